// A second name for a function, set by the assembler, so that no parameter list is written twice: .set is
// resolved there, and the name is the function. At namespace scope.
#pragma once

// How inline assembly is given a function's own name, in code that may lie anywhere.
#if defined(__aarch64__)
#define OUTBOARD_NAME_IN_ASM "%0"
#define OUTBOARD_NAME_OPERAND "S"
#else
#define OUTBOARD_NAME_IN_ASM "%c0"
#define OUTBOARD_NAME_OPERAND "i"
#endif

/// Exports `target`, a function of this translation unit that is marked as used, as `symbol`.
#define OUTBOARD_EXPORT(symbol, target)                                             \
  [[gnu::used]] static void outboard_export_##symbol() {                            \
    asm volatile(".globl " #symbol "\n.type " #symbol ", %%function\n.set " #symbol \
                 ", " OUTBOARD_NAME_IN_ASM ::OUTBOARD_NAME_OPERAND(target));        \
  }
