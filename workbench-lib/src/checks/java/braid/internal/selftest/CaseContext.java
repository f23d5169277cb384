package braid.internal.selftest;

import braid.ProcessGroup;
import braid.TensorView;
import braid.model.MemoryKind;
import java.util.function.Consumer;

/// Group and memory on which a case runs.
///
/// @param kind kind of the symmetric memory
/// @param alteration change of each result before it is checked: none, except in tests that prove
///   that wrong results are found
public record CaseContext(ProcessGroup group, MemoryKind kind, Consumer<TensorView> alteration) {
  public static CaseContext of(ProcessGroup group, MemoryKind kind) {
    return new CaseContext(group, kind, _ -> {});
  }
}
