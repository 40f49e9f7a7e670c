/* Built without libedit. */
#include "cli/chat/line.h"

#include <stddef.h>

const line_editor *line_editor_here(void)
{
    return NULL;
}
