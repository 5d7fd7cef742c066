#include "clients/clients.h"
