#include "arena_cases.h"
