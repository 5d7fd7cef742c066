#include "clients/config_files.h"
