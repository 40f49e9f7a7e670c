/* The sandbox of a server. */
#ifndef BZ_CLI_SERVE_SANDBOX_H
#define BZ_CLI_SERVE_SANDBOX_H

#include "cli/cli.h"

/* Enters the sandbox before a model is read, after the server has begun to listen: no further port,
 * no connection, no other program. Without a GPU these may be read and nothing else:
 *
 *   page           the folder with the page, "" for none
 *   --model file   its folder, so that the file may be replaced; and the folder of the file that
 *                  it or one of its parts is a link to. Of a file in / only itself.
 *   --model folder the folder, and the folders of files that it has links to
 *   the store      its folders, which may be written too if this user may; created if missing,
 *                  as Ollama does, if the folder that holds it exists
 *   the system     sandbox_allow_system()
 *
 * Later links to elsewhere cannot be read. False after a message; *exit_code is set. */
bool serve_enter_sandbox(const cli_options *o, const char *page, int *exit_code);

/* The process for downloads: it connects, and reads and writes the store; as --sandbox auto, since
 * the server itself fails if it is on and impossible. */
void serve_confine_puller(const cli_options *o);

#endif
