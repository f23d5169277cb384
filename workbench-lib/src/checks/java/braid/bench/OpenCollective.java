package braid.bench;

import braid.Chain;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.model.Collective;
import braid.model.MemoryKind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// A standalone collective on a group. Braid's copies work on memory of the default kind, libraries
/// on NCCL's, which all of them reach.
final class OpenCollective implements OpenWorkload {
  private final ProcessGroup group;
  private final CollectiveWorkload workload;
  private final Map<Optional<MemoryKind>, Tensors> tensors = new HashMap<>();
  private final List<SymmetricTensor> opened = new ArrayList<>();

  private record Tensors(SymmetricTensor x, SymmetricTensor y) {}

  OpenCollective(ProcessGroup group, CollectiveWorkload workload) {
    this.group = group;
    this.workload = workload;
  }

  @Override
  public BuiltForm build(Form form) {
    var way = workload.way(form);
    var comm = way.on(group);
    var used =
        tensors.computeIfAbsent(
            way.way().library().map(_ -> MemoryKind.NCCL),
            kind ->
                new Tensors(
                    allocate(Collective.ALL_GATHER, kind, 1),
                    allocate(Collective.REDUCE_SCATTER, kind, 2)));
    var chain = Chain.on(group);
    for (int call = 0; call < CollectiveWorkload.CALLS; call++) {
      chain = chain.then(comm.link(c -> workload.call(c, used.x, used.y)));
    }
    return new BuiltForm(chain::time, () -> {});
  }

  /// Allocates a tensor with random numbers.
  ///
  /// @param divides the collective that has only a rank's part in it
  private SymmetricTensor allocate(Collective divides, Optional<MemoryKind> kind, long seed) {
    long elements = workload.elements();
    var builder =
        SymmetricTensor.on(group)
            .shape(workload.collective() == divides ? elements / group.size() : elements)
            .dtype(workload.dtype());
    var tensor = kind.map(builder::memory).orElse(builder).allocate();
    opened.add(tensor);
    tensor.local().fillRandom(seed + 31L * group.rank());
    return tensor;
  }

  @Override
  public void close() {
    opened.reversed().forEach(SymmetricTensor::close);
  }
}
