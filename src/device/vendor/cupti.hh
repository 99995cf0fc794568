// What the driver's device did, told by NVIDIA's CUPTI, which is loaded when somebody first asks. It belongs
// to the toolkit, not to the driver: a machine may have none. Only its public activity interface is used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/work_recorder.hh"

namespace outboard::device::vendor {

/// One a process, because CUPTI's callbacks carry no pointer of ours. The first start() loads the first of
/// cupti_candidates() that there is; the driver must be loaded by then. nullptr: this was compiled without
/// CUPTI's headers.
std::unique_ptr<work_recorder> make_cupti_recorder();

/// Existing files that start() tries, in its order: what the loader would find, and the folders of toolkits.
std::vector<std::string> cupti_candidates();

}  // namespace outboard::device::vendor
