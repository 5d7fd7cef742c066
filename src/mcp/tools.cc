#include "mcp/tools.h"
