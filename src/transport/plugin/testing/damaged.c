/* A plug-in whose table is wrong in the way that OUTBOARD_DAMAGE names. The loader must notice before it
 * calls any function. */
#include <stdlib.h>
#include <string.h>

#include "transport/plugin/abi.h"

const void* outboard_transport_entry(uint32_t version) {
  static struct outboard_transport_v1 table;
  const char* damage = getenv("OUTBOARD_DAMAGE");
  if (version != 1 || damage == NULL) return NULL;
  memset(&table, 0, sizeof table); /* functions: all missing */
  table.version = strcmp(damage, "version") == 0 ? 7 : 1;
  table.size = strcmp(damage, "size") == 0 ? 16 : (uint32_t)sizeof table;
  table.scheme = strcmp(damage, "scheme") == 0 ? "Not A Scheme" : "damaged";
  return &table;
}
