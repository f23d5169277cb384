package braid;

import braid.model.AllReduce;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.schedule.plan.CollectiveSpec;
import java.util.ArrayList;
import java.util.List;

/// Checks whether a collective accepts its tensors; an error states the rule.
///
/// @param name call in messages: the collective, or `sendReceive`
record ShapeRules(ProcessGroup group, Collective collective, String name, SymmetricTensor x) {
  ShapeRules(ProcessGroup group, Collective collective, SymmetricTensor x) {
    this(group, collective, collective.toString(), x);
  }

  /// Requires an open tensor of the group.
  void usable(SymmetricTensor tensor) {
    if (!tensor.group().equals(group)) {
      throw new BraidException(
          "%s: tensors must be of the group but `%s` is of group `%s`; allocate it on group `%s`"
              .formatted(this, tensor.name(), tensor.group().name(), group.name()));
    }
    // Throws if the tensor is closed.
    var _ = tensor.local();
  }

  /// Requires that the route offers the collective for the memory and type of the tensor.
  void available(CollectiveWay way, SymmetricTensor tensor) {
    var rules = CollectiveRules.of(group.context().backend().kind());
    var reason = rules.unsupported(collective, way, tensor.kind());
    if (!reason.isEmpty()) {
      throw new BraidException(
          "%s: not available by %s in %s memory (`%s`): %s"
              .formatted(this, way, tensor.kind(), tensor.name(), reason));
    }
    var library = way.library();
    if (collective.adds() && library.isEmpty()) {
      refuse(rules.unaddable(group.size()), "call over(NCCL_KERNELS)");
    }
    if (collective.adds() && library.isPresent() && !library.get().adds(tensor.dtype())) {
      throw new BraidException(
          "%s: %s adds fp32, bf16 and fp16 but `%s` is %s; call over(COPY_ENGINE)"
              .formatted(this, way, tensor.name(), tensor.dtype()));
    }
  }

  private void refuse(String reason, String remedy) {
    if (!reason.isEmpty()) {
      throw new BraidException("%s: %s; %s".formatted(this, reason, remedy));
    }
  }

  /// Requires a result of that shape and of the type of `x`.
  void into(SymmetricTensor y, List<Long> shape, String rule) {
    Given.check("y", y);
    usable(y);
    if (y.dtype() != x.dtype()) {
      throw new BraidException(
          "%s: x and y must be of one type but `%s` is %s and `%s` is %s; allocate y as %s"
              .formatted(this, x.name(), x.dtype(), y.name(), y.dtype(), x.dtype()));
    }
    if (!y.shape().equals(shape)) {
      throw new BraidException(
          "%s: y must be %s (%s) for `%s` %s on %d ranks but `%s` is %s; allocate y as %s"
              .formatted(
                  this,
                  TensorView.text(shape),
                  rule,
                  x.name(),
                  TensorView.text(x.shape()),
                  group.size(),
                  y.name(),
                  TensorView.text(y.shape()),
                  TensorView.text(shape)));
    }
  }

  /// Requires that a one-shot sum in place fits into the staging buffer.
  void roomFor(AllReduce algorithm, SymmetricTensor y) {
    long bytes = x.local().elements() * x.dtype().bytes();
    long most = CollectiveSpec.largestOneShotInPlace();
    if (algorithm == AllReduce.ONE_SHOT && x.equals(y) && group.size() > 1 && bytes > most) {
      throw new BraidException(
          "%s: one-shot in place takes at most %d bytes but `%s` has %d; give another tensor for y, or call twoShot()"
              .formatted(this, most, x.name(), bytes));
    }
  }

  /// Requires two tensors, since other ranks still read `x` while `y` is written.
  void other(SymmetricTensor y) {
    if (x.equals(y)) {
      throw new BraidException(
          "%s: x and y must be two tensors, since others still read x when y is written, but both are `%s`; allocate another for y"
              .formatted(this, x.name()));
    }
  }

  List<Long> timesRanks() {
    return withFirst(Math.multiplyExact(x.shape().getFirst(), (long) group.size()));
  }

  List<Long> dividedByRanks() {
    long first = x.shape().getFirst();
    int ranks = group.size();
    if (first % ranks != 0) {
      throw new BraidException(
          "%s: the first size of x must divide by the %d ranks but `%s` is %s; pad it to %s"
              .formatted(
                  this,
                  ranks,
                  x.name(),
                  TensorView.text(x.shape()),
                  TensorView.text(withFirst((first / ranks + 1) * ranks))));
    }
    return withFirst(first / ranks);
  }

  /// Returns the name of a new result, cut to the longest name allowed.
  String resultName() {
    var full = "%s of %s".formatted(name, x.name());
    int characters =
        Math.min(full.codePointCount(0, full.length()), SymmetricTensor.MAX_NAME_CHARACTERS);
    return full.substring(0, full.offsetByCodePoints(0, characters));
  }

  private List<Long> withFirst(long first) {
    var shape = new ArrayList<>(x.shape());
    shape.set(0, first);
    return shape;
  }

  @Override
  public String toString() {
    return "%s in group `%s`".formatted(name, group.name());
  }
}
