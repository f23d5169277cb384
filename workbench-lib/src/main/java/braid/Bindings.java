package braid;

import braid.internal.pipeline.CallerMemory;
import braid.internal.resource.SymmetricMemory;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.MemoryKind;
import braid.model.Problem;
import braid.schedule.Part;
import braid.schedule.Schedule;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The caller's tensors that a pipeline works on, by part.
final class Bindings {
  private final EnumMap<Part, Tensor> tensors = new EnumMap<>(Part.class);

  /// Symmetric memory that tensors of another plan are views of.
  private final EnumMap<Part, Shared> shared = new EnumMap<>(Part.class);

  private record Shared(SymmetricMemory memory, MemoryKind kind) {}

  void add(Part part, Tensor tensor) {
    var before = tensors.putIfAbsent(part, tensor);
    if (before != null) {
      throw new BraidException(
          "%s was given already: %s; give it once".formatted(part, text(before)));
    }
  }

  /// Adds a tensor that is a view of symmetric memory of another plan.
  void add(Part part, Tensor tensor, SymmetricMemory memory, MemoryKind kind) {
    add(part, tensor);
    shared.put(part, new Shared(memory, kind));
  }

  void addAll(Bindings others) {
    tensors.putAll(others.tensors);
    shared.putAll(others.shared);
  }

  boolean has(Part part) {
    return tensors.containsKey(part);
  }

  boolean isEmpty() {
    return tensors.isEmpty();
  }

  /// Returns the kind of the pipeline's symmetric memory: the kind of its symmetric tensors, if
  /// any, else the requested one.
  @Nullable MemoryKind kind(@Nullable MemoryKind requested, ProcessGroup group) {
    var resolved = requested == null ? null : group.context().backend().resolve(requested);
    for (var entry : tensors.entrySet()) {
      if (!(entry.getValue() instanceof SymmetricTensor tensor)) {
        continue;
      }
      if (resolved != null && tensor.kind() != resolved) {
        throw new BraidException(
            "%s must be in %s memory, as the pipeline's other symmetric memory is, but `%s` is in %s; allocate it with memory(%s)"
                .formatted(
                    entry.getKey(), resolved, tensor.name(), tensor.kind(), resolved.name()));
      }
      resolved = tensor.kind();
    }
    for (var entry : shared.entrySet()) {
      var kind = entry.getValue().kind();
      if (resolved != null && kind != resolved) {
        throw new BraidException(
            "%s must be in %s memory, as the other symmetric memory is, but that of the forward attention is in %s; build it with memory(%s)"
                .formatted(entry.getKey(), resolved, kind, resolved.name()));
      }
      resolved = kind;
    }
    return resolved;
  }

  /// Refuses tensors that do not fit the problem, before anything is built.
  void check(Problem problem, Schedule schedule, ProcessGroup group) {
    tensors.forEach(
        (part, tensor) -> {
          if (schedule.port(part.port()).isEmpty()) {
            throw new BraidException(
                "`%s` has no %s but %s was given for it; leave it out"
                    .formatted(problem, part, text(tensor)));
          }
          checkOpen(tensor);
          checkPlace(part, tensor, group);
          checkShape(part, tensor, problem, group);
          checkAlone(part, tensor, problem);
        });
  }

  private static void checkPlace(Part part, Tensor tensor, ProcessGroup group) {
    switch (tensor) {
      case SymmetricTensor all -> {
        if (!all.group().equals(group)) {
          throw new BraidException(
              "%s must be on group `%s` but symmetric tensor `%s` is on group `%s`; allocate it on `%s`, or give a LocalTensor"
                  .formatted(part, group.name(), all.name(), all.group().name(), group.name()));
        }
      }
      case LocalTensor mine -> {
        if (mine.isPinned()) {
          throw new BraidException(
              "%s must be in the memory that streams work on but %s is in the host's; allocate it without pinned()"
                  .formatted(part, mine));
        }
      }
      case TensorView view -> {
        if (!view.isReachedBy(group.context().backend().access())) {
          throw new BraidException(
              "%s must be one place in the memory that streams work on but %s is not; give a view of one rank's tensor on the device"
                  .formatted(part, text(view)));
        }
      }
    }
  }

  private static void checkShape(Part part, Tensor tensor, Problem problem, ProcessGroup group) {
    var mine = part.sizes(problem, group.size(), group.rank());
    var wanted = part.dtype(problem);
    boolean fits =
        tensor.shape().equals(mine)
            // A line of numbers may be the weight of another pipeline.
            || (part.isVector() && elements(tensor.shape()) == elements(mine))
            || (tensor instanceof SymmetricTensor
                && tensor.shape().equals(largest(part, problem, group.size()))
                && tail(tensor.shape()).equals(tail(mine)));
    if (!fits) {
      throw new BraidException(
          "%s of `%s` must be %s on rank %d of %d but %s was given; %s"
              .formatted(
                  part,
                  problem,
                  TensorView.text(mine),
                  group.rank(),
                  group.size(),
                  text(tensor),
                  remedy(part, tensor, problem, group, mine)));
    }
    if (!sameStorage(tensor.dtype(), wanted)) {
      throw new BraidException(
          "%s of `%s` must be %s but %s was given; allocate it with dtype(%s)"
              .formatted(part, problem, wanted, text(tensor), wanted.name()));
    }
  }

  /// Returns how to allocate a tensor that fits. A symmetric tensor has the same sizes on all
  /// ranks; the parts of ranks may differ.
  private static String remedy(
      Part part, Tensor tensor, Problem problem, ProcessGroup group, List<Long> mine) {
    if (!(tensor instanceof SymmetricTensor)) {
      return "allocate it with shape(%s)".formatted(sizes(mine));
    }
    var most = largest(part, problem, group.size());
    boolean alike =
        IntStream.range(0, group.size())
            .allMatch(rank -> tail(part.sizes(problem, group.size(), rank)).equals(tail(most)));
    return alike
        ? "allocate it with shape(%s)".formatted(sizes(most))
        : "give a LocalTensor, since the sizes differ by rank";
  }

  /// The sizes that hold any rank's part: the sizes of the rank with most rows.
  private static List<Long> largest(Part part, Problem problem, int ranks) {
    return IntStream.range(0, ranks)
        .mapToObj(rank -> part.sizes(problem, ranks, rank))
        .max((a, b) -> Long.compare(a.getFirst(), b.getFirst()))
        .orElseThrow();
  }

  private static long elements(List<Long> sizes) {
    return sizes.stream().reduce(1L, (a, b) -> a * b);
  }

  private static List<Long> tail(List<Long> sizes) {
    return sizes.subList(1, sizes.size());
  }

  private static String sizes(List<Long> sizes) {
    return sizes.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }

  private static boolean sameStorage(DType a, DType b) {
    return a == b || (a.isStoredAsFp32() && b.isStoredAsFp32());
  }

  private void checkAlone(Part part, Tensor tensor, Problem problem) {
    for (var other : tensors.entrySet()) {
      boolean written = !part.given(problem) || !other.getKey().given(problem);
      if (other.getKey() != part && written && overlap(tensor, other.getValue())) {
        throw new BraidException(
            "%s and %s must be different tensors, since a run writes one while it reads the other, but both are %s; allocate another"
                .formatted(part, other.getKey(), text(tensor)));
      }
    }
  }

  private static boolean overlap(Tensor one, Tensor other) {
    return segment(one).asOverlappingSlice(segment(other)).isPresent();
  }

  private static String text(Tensor tensor) {
    return tensor instanceof TensorView view
        ? "a view %s %s".formatted(TensorView.text(view.shape()), view.dtype())
        : tensor.toString();
  }

  /// This rank's memory of a tensor.
  private static MemorySegment segment(Tensor tensor) {
    return switch (tensor) {
      case SymmetricTensor all -> all.memory().on(all.group().rank());
      case LocalTensor mine -> mine.segment();
      case TensorView view -> view.memory();
    };
  }

  /// Refuses to run on a tensor that was closed.
  void checkOpen() {
    for (var tensor : tensors.values()) {
      checkOpen(tensor);
    }
  }

  private static void checkOpen(Tensor tensor) {
    switch (tensor) {
      case SymmetricTensor all -> all.checkOpen();
      case LocalTensor mine -> mine.checkOpen();
      case TensorView view -> view.checkAlive();
    }
  }

  Map<Part, CallerMemory> bound() {
    var bound = new EnumMap<Part, CallerMemory>(Part.class);
    tensors.forEach(
        (part, tensor) ->
            bound.put(
                part,
                new CallerMemory(
                    segment(tensor),
                    tensor instanceof SymmetricTensor all
                        ? Optional.of(all.memory())
                        : Optional.ofNullable(shared.get(part)).map(Shared::memory))));
    return bound;
  }

  /// The caller's tensors in words, on which all ranks must agree.
  @Override
  public String toString() {
    var words = new ArrayList<String>();
    tensors.forEach(
        (part, tensor) ->
            words.add(
                "%s %s"
                    .formatted(
                        part,
                        switch (tensor) {
                          case SymmetricTensor all -> "in " + all.identity();
                          case LocalTensor _, TensorView _ ->
                              shared.containsKey(part) ? "of an attention" : "in local memory";
                        })));
    return words.isEmpty() ? "" : ", " + String.join(", ", words);
  }
}
