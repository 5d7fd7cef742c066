// The capabilities of an entry as the document of a manifest, over the text of capgate.yaml itself:
// every place in it is a place of that file, so that a mistake is shown where it was written.
#pragma once

#include "clients/config.h"
#include "text/document.h"

namespace capgate::clients {

[[nodiscard]] text::Document entry_manifest(const ServerConfig& server,
                                            const text::SharedText& text);

}  // namespace capgate::clients
