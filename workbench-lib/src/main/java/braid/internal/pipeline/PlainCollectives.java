package braid.internal.pipeline;

import braid.internal.backend.Backend;
import braid.internal.backend.Stream;
import braid.internal.library.LibraryCollectives;
import braid.internal.library.LibraryRequest;
import braid.internal.library.TensorPart;
import braid.internal.rank.Closing;
import braid.internal.resource.SymmetricMemory;
import braid.internal.resource.SymmetricSource;
import braid.internal.work.Epilogue;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.Collective;
import braid.model.DType;
import braid.model.Place;
import braid.model.Stage;
import braid.schedule.Lane;
import braid.schedule.Slice;
import braid.schedule.plan.Addend;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.IntFunction;

/// Reference multiplications and collectives: sequential, unsplit, with a barrier before and after.
/// Slow, and simple enough to be verified by reading. Sums are computed in fp32 and returned in the
/// type in which ranks send their parts. Roundings and their order are those of the method, which
/// rounds the sums that ranks pass on.
final class PlainCollectives implements AutoCloseable {
  private static final Work WORK = Work.of(() -> "the reference");

  private final Peers peers;
  private final Place place;
  private final Plan plan;
  private final Backend backend;
  private final SymmetricSource symmetric;
  private final Stream stream;
  private final Deque<AutoCloseable> resources = new ArrayDeque<>();

  /// Empty if this rank has an address of all memory.
  private final Optional<LibraryCollectives> gathering;

  private final Map<Long, SymmetricMemory> summed = new HashMap<>();
  private final Map<Long, MemorySegment> gathered = new HashMap<>();

  /// Rows of one rank's part of a matrix.
  private record Rows(int start, int rows) {
    int end() {
      return start + rows;
    }
  }

  /// @param plan determines the roundings
  PlainCollectives(Peers peers, Plan plan, SymmetricSource symmetric) {
    this.peers = peers;
    this.place = peers.place();
    this.plan = plan;
    this.backend = plan.backend();
    this.symmetric = symmetric;
    this.gathering = plan.gathering().map(this::keep);
    this.stream = keep(backend.stream(Lane.of("reference", Lane.Role.COMPUTE)));
  }

  /// Returns `a · b`, scaled, in fp32.
  Matrix times(Matrix a, Matrix b, float scale) {
    var product = matrix(DType.FP32, a.rows(), b.columns());
    var operand = keep(backend.operand(b, a.dtype()));
    stream.prepare(WORK, operand);
    stream.gemm(WORK, new Gemm(a, operand, product, Epilogue.NONE.scaled(scale)));
    synchronize();
    return product;
  }

  /// Returns the `total` rows of all ranks, in the order of the ranks.
  Matrix allGather(Matrix local, int total) {
    var shared = shared("all-gather", local.dtype(), longest(total), local.columns());
    copyLocal(local, like(local, shared.on(place.rank()), local.rows()));
    var parts = parts(shared);
    var room = matrix(local.dtype(), total, local.columns());
    var whole = like(local, room.segment(), total);
    for (int rank = 0; rank < place.size(); rank++) {
      var slice = part(total, rank);
      copyLocal(
          like(local, parts.apply(rank), slice.rows()), whole.rows(slice.start(), slice.rows()));
    }
    peers.barrier().run();
    return whole;
  }

  /// Returns contiguous rows in `memory`, stored by rows or by columns like `matrix`.
  private static Matrix like(Matrix matrix, MemorySegment memory, int rows) {
    return matrix.transposed()
        ? Matrix.transposed(memory, matrix.dtype(), rows, matrix.columns())
        : Matrix.of(memory, matrix.dtype(), rows, matrix.columns());
  }

  /// Returns the sum of all ranks' matrices, each rounded to type `travelling` first.
  Matrix allReduce(Matrix local, DType travelling) {
    return sum(local, travelling, 0, place.size());
  }

  /// Returns this rank's rows of that sum.
  Matrix reduceScatter(Matrix local, DType travelling) {
    return sum(local, travelling, place.rank(), place.rank() + 1);
  }

  /// Returns the sum's rows of owners `firstOwner` to before `lastOwner`.
  private Matrix sum(Matrix local, DType travelling, int firstOwner, int lastOwner) {
    int rows = local.rows();
    int columns = local.columns();
    // Cached, because calls repeat with the same size.
    var shared =
        summed.computeIfAbsent(
            (long) rows * columns * travelling.bytes(),
            bytes -> keep(symmetric.take("the reference's sum", bytes)));
    copy(local, Matrix.of(shared.on(place.rank()), travelling, rows, columns));
    var parts = parts(shared);
    int first = part(rows, firstOwner).start();
    var sum = matrix(travelling, part(rows, lastOwner - 1).end() - first, columns);
    for (int owner = firstOwner; owner < lastOwner; owner++) {
      var slice = part(rows, owner);
      add(
          plan.sum(owner),
          rank ->
              Matrix.of(parts.apply(rank), travelling, rows, columns)
                  .rows(slice.start(), slice.rows()),
          sum.rows(slice.start() - first, slice.rows()));
    }
    synchronize();
    peers.barrier().run();
    return sum;
  }

  /// Adds in fp32, in the order of the parts. Sums among them are rounded.
  private void add(Addend.Sum addends, IntFunction<Matrix> parts, Matrix sum) {
    var added = new ArrayList<Matrix>();
    for (var addend : addends.parts()) {
      switch (addend) {
        case Addend.OfRank(int rank) -> added.add(parts.apply(rank));
        case Addend.Sum passed -> {
          var rounded = matrix(sum.dtype(), sum.rows(), sum.columns());
          add(passed, parts, rounded);
          added.add(rounded);
        }
      }
    }
    stream.reduce(WORK, new Reduction(added, sum, Epilogue.NONE));
  }

  /// Copies, rounds if the types differ, and applies the epilogue.
  void copy(Matrix from, Matrix to, Epilogue epilogue) {
    stream.reduce(WORK, new Reduction(List.of(from), to, epilogue));
    synchronize();
  }

  /// Copies unchanged, within this rank.
  void copyLocal(Matrix from, Matrix to) {
    stream.copyLocal(WORK, Transfer.of(from, to));
    synchronize();
  }

  void copy(Matrix from, Matrix to) {
    copy(from, to, Epilogue.NONE);
  }

  private void synchronize() {
    stream.synchronize(WORK::toString);
  }

  Matrix matrix(DType dtype, int rows, int columns) {
    var memory = keep(backend.allocate((long) rows * columns * dtype.bytes()));
    return Matrix.of(memory.segment(), dtype, rows, columns);
  }

  private SymmetricMemory shared(String name, DType dtype, int rows, int columns) {
    return keep(symmetric.take("the reference's " + name, (long) rows * columns * dtype.bytes()));
  }

  /// Returns the parts of all ranks, once every rank has written its own.
  private IntFunction<MemorySegment> parts(SymmetricMemory shared) {
    peers.barrier().run();
    if (gathering.isEmpty()) {
      return shared::on;
    }
    var library = gathering.get();
    long bytes = shared.bytesPerRank();
    var all =
        gathered.computeIfAbsent(
            bytes, each -> keep(backend.allocate(each * place.size())).segment());
    var request =
        new LibraryRequest(
            Collective.ALL_GATHER,
            new TensorPart(DType.FP8_E4M3, shared.on(place.rank()), Optional.empty()),
            new TensorPart(DType.FP8_E4M3, all, Optional.empty()),
            0);
    if (library.precondition(request) != LibraryCollectives.Precondition.NONE) {
      peers.barrier().run();
    }
    stream.library(WORK, Stage.COPY, request.linkBytes(place.size()), 0, library.call(request));
    synchronize();
    return rank -> all.asSlice(rank * bytes, bytes);
  }

  private int longest(int total) {
    return part(total, 0).rows();
  }

  private Rows part(int total, int rank) {
    var slice = Slice.of(total, place.size(), rank);
    return new Rows(Math.toIntExact(slice.start()), Math.toIntExact(slice.length()));
  }

  private <T extends AutoCloseable> T keep(T resource) {
    resources.push(resource);
    return resource;
  }

  @Override
  public void close() {
    Closing.all(resources::poll);
  }
}
