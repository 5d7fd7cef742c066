#include "clients/client_file.h"
