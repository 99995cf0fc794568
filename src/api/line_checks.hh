// What is checked of a table's line of each kind, in the file that has the table: what OUTBOARD_CHECK_call,
// which that file defines, checks; nothing of a line without a prototype. No state.
#pragma once

#define OUTBOARD_CHECK_post OUTBOARD_CHECK_call
#define OUTBOARD_CHECK_custom OUTBOARD_CHECK_call
#define OUTBOARD_CHECK_via OUTBOARD_CHECK_call
#define OUTBOARD_CHECK_local OUTBOARD_CHECK_call
#define OUTBOARD_CHECK_later(symbol)
#define OUTBOARD_CHECK_refused(symbol)
