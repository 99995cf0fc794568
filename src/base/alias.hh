// A second name for a function, set by the assembler's .set directive, so that no parameter list is written
// twice. Use at namespace scope.
#pragma once

// The operand constraint that passes a function's own name to inline assembly, in code that may be loaded
// anywhere.
#if defined(__aarch64__)
#define OUTBOARD_NAME_IN_ASM "%0"
#define OUTBOARD_NAME_OPERAND "S"
#else
#define OUTBOARD_NAME_IN_ASM "%c0"
#define OUTBOARD_NAME_OPERAND "i"
#endif

/// Exports `target`, a function of this translation unit that is marked as used, under the name `symbol`.
#define OUTBOARD_EXPORT(symbol, target)                                             \
  [[gnu::used]] static void outboard_export_##symbol() {                            \
    asm volatile(".globl " #symbol "\n.type " #symbol ", %%function\n.set " #symbol \
                 ", " OUTBOARD_NAME_IN_ASM ::OUTBOARD_NAME_OPERAND(target));        \
  }
