package braid.internal.selftest;

import braid.ProcessGroup;
import braid.Tensor;
import braid.model.MemoryKind;
import java.util.function.Consumer;

/// Where a case is run.
///
/// @param kind of the symmetric memory
/// @param handled what happens to each result before it is looked at: nothing, unless somebody
///   wants to see that a wrong result is found
public record CaseGroup(ProcessGroup group, MemoryKind kind, Consumer<Tensor> handled) {
  public static CaseGroup of(ProcessGroup group, MemoryKind kind) {
    return new CaseGroup(group, kind, _ -> {});
  }
}
