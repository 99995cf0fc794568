// What a visitor gets instead of the device's own entries, chapter by chapter. Each function fills its part
// of the table; the entries find their visitor by current_visitor().
#pragma once

#include "backend/nvml/visitor.hh"

namespace outboard::backend::nvml {

/// The list of devices is that of the devices lent.
void shield_devices(api::nvml::function_table& t);
/// A board of the visitor's by what the driver calls its PCI format: domain, bus and device in one number.
bool is_lent_board(unsigned pci_id);
/// Names and memory are what the server's configuration makes of them.
void shield_shape(api::nvml::function_table& t);
/// Processes are the client's own, by its own numbers.
void shield_processes(api::nvml::function_table& t);
/// What a client makes is counted, forgotten when freed, and waits in small pieces.
void shield_objects(api::nvml::function_table& t);

}  // namespace outboard::backend::nvml
