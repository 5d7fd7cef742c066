#include "clients/install.h"
