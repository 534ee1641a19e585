# cmake -DSOURCE=DIR -DOUTPUT=FILE -P commit.cmake: writes the source that defines assay::commit(), if it would change.
# A source archive has no history; `git archive` writes the commit into the next line instead.
set(archived "$Format:%h$")
set(commit "")
if(NOT archived MATCHES "Format")
  set(commit ${archived})
elseif(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=7 --dirty=+
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[#include "assay/base/version.h"

std::string_view assay::commit() { return "@commit@"; }
]])
