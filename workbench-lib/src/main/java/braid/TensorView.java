package braid;

import braid.internal.resource.Access;
import braid.model.BraidException;
import braid.model.DType;
import braid.natives.kernels.Drawn;
import braid.natives.kernels.Integers;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/// A view of memory as rows of numbers. It owns no memory, and ends with the tensor it views. A
/// view may represent several places at once (a multicast): writes go to each of them, reads use
/// the first.
public final class TensorView implements Tensor {
  /// Largest absolute value that [#fillIntegers] writes: small enough that sums of products are
  /// exact in fp32 for any depth in use.
  public static final int MAX_FILLED_INTEGER = Integers.LARGEST;

  private static final int SHOWN_ELEMENTS = 8;

  /// Length of the longest array that every JVM supports.
  private static final int MAX_ARRAY_ELEMENTS = Integer.MAX_VALUE - 8;

  private static final int WIDENED_ELEMENTS = 1 << 20;

  private final List<Long> shape;
  private final DType dtype;
  private final List<MemorySegment> places;

  /// Memory that lives as long as the viewed tensor.
  private final MemorySegment alive;

  private final Supplier<String> ended;
  private final Access access;

  /// @param ended error message, with the remedy, for a view whose memory has ended
  TensorView(
      List<Long> shape,
      DType dtype,
      List<MemorySegment> places,
      MemorySegment alive,
      Supplier<String> ended,
      Access access) {
    this.shape = List.copyOf(shape);
    this.dtype = dtype;
    this.places = List.copyOf(places);
    this.alive = alive;
    this.ended = ended;
    this.access = access;
  }

  TensorView(
      List<Long> shape,
      DType dtype,
      List<MemorySegment> places,
      Supplier<String> ended,
      Access access) {
    this(shape, dtype, places, places.getFirst(), ended, access);
  }

  TensorView(List<Long> shape, DType dtype, MemorySegment place, Access access) {
    this(
        shape,
        dtype,
        List.of(place),
        () -> "the memory of this %s %s view is closed".formatted(text(shape), dtype),
        access);
  }

  @Override
  public List<Long> shape() {
    return shape;
  }

  @Override
  public DType dtype() {
    return dtype;
  }

  /// Returns the memory itself, if the host can read it; of a multicast, this rank's.
  public MemorySegment segment() {
    if (!access.reaches(places.getFirst())) {
      throw new BraidException(
          "the host cannot read the memory of this %s %s itself; use toFloats() or copyFrom(...)"
              .formatted(text(shape), dtype));
    }
    return memory();
  }

  /// Returns the memory, also if only streams can reach it.
  MemorySegment memory() {
    checkAlive();
    return places.getFirst();
  }

  /// Returns true if all of it is in one place that `streams` reach.
  boolean isReachedBy(Access streams) {
    return places.size() == 1 && access.equals(streams);
  }

  /// Requires that the memory has not ended, which an access to a device by address would not
  /// notice.
  void checkAlive() {
    if (!alive.scope().isAlive()) {
      throw new BraidException(ended.get());
    }
  }

  /// Returns the number of elements.
  public long elements() {
    return shape.stream().reduce(1L, (a, b) -> a * b);
  }

  public float get(long... index) {
    Given.check("index", index);
    long offset = offset(index);
    return reach(() -> access.get(dtype, places.getFirst(), offset));
  }

  public TensorView set(float value, long... index) {
    Given.check("index", index);
    long offset = offset(index);
    return each(place -> access.set(dtype, place, offset, value));
  }

  public TensorView fill(float value) {
    return each(place -> access.fill(dtype, place, value));
  }

  /// Fills with random integers from -3 to 3, drawn from the seed, so that sums of products are
  /// exact and two implementations must agree to the last bit.
  public TensorView fillIntegers(long seed) {
    return draw(Drawn.INTEGERS, seed);
  }

  /// Fills with random numbers of mean 0 and variance 1, drawn from the seed and rounded to the
  /// type. They need more power than small integers, so a GPU multiplies them slower.
  public TensorView fillRandom(long seed) {
    return draw(Drawn.REALS, seed);
  }

  TensorView draw(Drawn numbers, long seed) {
    return each(place -> access.draw(dtype, place, numbers, seed));
  }

  /// Copies an array of [#elements] values, row by row, each rounded to the type.
  public TensorView copyFrom(float... values) {
    Given.check("values", values);
    checkAlive();
    if (values.length != elements()) {
      throw new BraidException(
          "copyFrom needs %d values for shape %s but was given %d"
              .formatted(elements(), text(shape), values.length));
    }
    return each(place -> access.store(dtype, values, place));
  }

  /// Copies a tensor of the same number of elements, row by row, rounded if the types differ.
  public TensorView copyFrom(TensorView source) {
    Given.check("source", source);
    checkAlive();
    if (source.elements() != elements()) {
      throw new BraidException(
          "copyFrom needs a tensor of %d values for shape %s but was given one of shape %s"
              .formatted(elements(), text(shape), text(source.shape)));
    }
    if (source.dtype != dtype) {
      return copyWidened(source);
    }
    var from = source.memory();
    if (source.access.equals(access)) {
      return each(place -> access.copy(from, place));
    }
    // If one of the two is host memory, the access of the other reaches both.
    if (source.access.direct()) {
      return each(place -> access.write(from, place));
    }
    return access.direct() ? each(place -> source.access.read(from, place)) : copyWidened(source);
  }

  /// Copies by way of host floats, in chunks, since no array has room for all values of a large
  /// tensor.
  private TensorView copyWidened(TensorView source) {
    for (long start = 0; start < elements(); start += WIDENED_ELEMENTS) {
      int count = (int) Math.min(WIDENED_ELEMENTS, elements() - start);
      var values = source.values(start, count);
      long first = start * dtype.bytes();
      each(place -> access.store(dtype, values, place.asSlice(first, bytes(count))));
    }
    return this;
  }

  /// Returns all values, row by row, widened to float; at most the elements of one Java array.
  public float[] toFloats() {
    checkAlive();
    if (elements() > MAX_ARRAY_ELEMENTS) {
      throw new BraidException(
          "toFloats returns at most %d values but %s has %d; call it on rows(start, count)"
              .formatted(MAX_ARRAY_ELEMENTS, text(shape), elements()));
    }
    return values(0, (int) elements());
  }

  /// Returns values from index `start` on, widened to float.
  private float[] values(long start, int count) {
    return reach(
        () -> {
          var values = new float[count];
          var from = places.getFirst().asSlice(start * dtype.bytes(), bytes(count));
          access.load(dtype, from, values);
          return values;
        });
  }

  private long bytes(int count) {
    return (long) count * dtype.bytes();
  }

  /// Returns a view of the rows from `start` on, in the first dimension.
  public TensorView rows(long start, long count) {
    checkAlive();
    if (start < 0 || count < 0 || start > shape.getFirst() - count) {
      throw new BraidException(
          "rows must lie in 0..%d but were %d from row %d on"
              .formatted(shape.getFirst() - 1, count, start));
    }
    long rowBytes = shape.getFirst() == 0 ? 0 : elements() / shape.getFirst() * dtype.bytes();
    return new TensorView(
        LongStream.concat(LongStream.of(count), sizes().skip(1)).boxed().toList(),
        dtype,
        places.stream().map(place -> place.asSlice(start * rowBytes, count * rowBytes)).toList(),
        alive,
        ended,
        access);
  }

  private TensorView each(Consumer<MemorySegment> write) {
    return reach(
        () -> {
          places.forEach(write);
          return this;
        });
  }

  /// Runs the body; throws [#ended]'s message if the memory ends before or during it.
  private <T> T reach(Supplier<T> body) {
    checkAlive();
    try {
      return body.get();
    } catch (IllegalStateException e) {
      if (alive.scope().isAlive()) {
        throw e;
      }
      throw new BraidException(ended.get(), e);
    }
  }

  private long offset(long... index) {
    if (index.length != shape.size()) {
      throw new BraidException(
          "an index into shape %s needs %d numbers but has %d"
              .formatted(text(shape), shape.size(), index.length));
    }
    long offset = 0;
    for (int d = 0; d < index.length; d++) {
      if (index[d] < 0 || index[d] >= shape.get(d)) {
        throw new BraidException(
            "index %s must lie in shape %s".formatted(Arrays.toString(index), text(shape)));
      }
      offset = offset * shape.get(d) + index[d];
    }
    return offset;
  }

  private LongStream sizes() {
    return shape.stream().mapToLong(Long::longValue);
  }

  static String text(List<Long> shape) {
    return shape.stream().map(String::valueOf).collect(Collectors.joining("x"));
  }

  @Override
  public String toString() {
    if (!alive.scope().isAlive()) {
      return "%s %s [%s]".formatted(text(shape), dtype, ended.get());
    }
    int shown = (int) Math.min(elements(), SHOWN_ELEMENTS);
    var taken = values(0, shown);
    var values =
        IntStream.range(0, shown)
            .mapToObj(i -> Float.toString(taken[i]))
            .collect(Collectors.joining(", "));
    return "%s %s [%s%s]".formatted(text(shape), dtype, values, shown < elements() ? ", ..." : "");
  }
}
