#include "clients/package.h"
