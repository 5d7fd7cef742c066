#include "clients/store.h"
