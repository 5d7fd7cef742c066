#include "clients/catalog.h"
