#include "clients/config.h"
