#include "import/sandbox_block.h"
