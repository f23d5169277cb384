package braid.internal.pipeline;

import braid.internal.backend.Backend;
import braid.internal.backend.Stream;
import braid.internal.rank.Closing;
import braid.internal.resource.SymmetricMemory;
import braid.internal.resource.SymmetricSource;
import braid.internal.work.Epilogue;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.DType;
import braid.model.Place;
import braid.schedule.Lane;
import braid.schedule.Slice;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Multiplications and collectives in the plainest way: one after the other, whole, with a barrier
/// before and after. Slow, and short enough to be seen to be right. Sums are kept in fp32 and
/// returned in the type in which ranks send their parts. Roundings and their order are those of the
/// method: a ring rounds the sum at every hop.
final class PlainCollectives implements AutoCloseable {
  private static final Work WORK = Work.of(() -> "the reference");

  private final Peers peers;
  private final Place place;
  private final Plan plan;
  private final Backend backend;
  private final SymmetricSource symmetric;
  private final Stream stream;
  private final Deque<AutoCloseable> made = new ArrayDeque<>();
  private final Map<Long, SymmetricMemory> summed = new HashMap<>();

  /// One rank's part of a matrix.
  private record Rows(int start, int rows) {
    int end() {
      return start + rows;
    }
  }

  /// @param plan whose roundings are kept
  PlainCollectives(Peers peers, Plan plan, SymmetricSource symmetric) {
    this.peers = peers;
    this.place = peers.place();
    this.plan = plan;
    this.backend = plan.backend();
    this.symmetric = symmetric;
    this.stream = keep(backend.stream(Lane.of("reference", Lane.Role.COMPUTE)));
  }

  /// `a · b`, scaled, in fp32.
  Matrix times(Matrix a, Matrix b, float scale) {
    var product = matrix(DType.FP32, a.rows(), b.columns());
    var operand = keep(backend.operand(b, a.dtype()));
    stream.prepare(WORK, operand);
    stream.gemm(WORK, new Gemm(a, operand, product, Epilogue.NONE.scaled(scale)));
    synchronize();
    return product;
  }

  /// All ranks' rows, of `total`, in the order of the ranks.
  Matrix allGather(Matrix mine, int total) {
    var shared = shared("all-gather", mine.dtype(), longest(total), mine.columns());
    keep(mine, like(mine, shared.on(place.rank()), mine.rows()));
    peers.barrier().run();
    var room = matrix(mine.dtype(), total, mine.columns());
    var whole = like(mine, room.segment(), total);
    for (int rank = 0; rank < place.size(); rank++) {
      var of = part(total, rank);
      keep(like(mine, shared.on(rank), of.rows()), whole.rows(of.start(), of.rows()));
    }
    peers.barrier().run();
    return whole;
  }

  /// So many rows without gaps in that memory, stored by rows or by columns as a matrix is.
  private static Matrix like(Matrix as, MemorySegment memory, int rows) {
    return as.transposed()
        ? Matrix.transposed(memory, as.dtype(), rows, as.columns())
        : Matrix.of(memory, as.dtype(), rows, as.columns());
  }

  /// The sum of all ranks' matrices. Each travels rounded to that type.
  Matrix allReduce(Matrix mine, DType travelling) {
    return sum(mine, travelling, 0, place.size());
  }

  /// This rank's rows of that sum.
  Matrix reduceScatter(Matrix mine, DType travelling) {
    return sum(mine, travelling, place.rank(), place.rank() + 1);
  }

  /// The rows of those owners, the first and those before the last.
  private Matrix sum(Matrix mine, DType travelling, int firstOwner, int lastOwner) {
    int rows = mine.rows();
    int columns = mine.columns();
    // Asked for again and again with the same size.
    var shared =
        summed.computeIfAbsent(
            (long) rows * columns * travelling.bytes(),
            bytes -> keep(symmetric.take("the reference's sum", bytes)));
    copy(mine, on(shared, place.rank(), travelling, rows, columns));
    peers.barrier().run();
    int first = part(rows, firstOwner).start();
    var sum = matrix(travelling, part(rows, lastOwner - 1).end() - first, columns);
    for (int owner = firstOwner; owner < lastOwner; owner++) {
      var of = part(rows, owner);
      var parts = new ArrayList<Matrix>();
      for (int rank : plan.addingOrder(owner)) {
        parts.add(on(shared, rank, travelling, rows, columns).rows(of.start(), of.rows()));
      }
      add(parts, sum.rows(of.start() - first, of.rows()));
    }
    synchronize();
    peers.barrier().run();
    return sum;
  }

  /// Adds in fp32, in that order. A ring rounds each sum that it sends on.
  private void add(List<Matrix> parts, Matrix sum) {
    var left = new ArrayDeque<>(parts);
    if (plan.isRing()) {
      while (left.size() > 2) {
        var sentOn = matrix(parts.getFirst().dtype(), sum.rows(), sum.columns());
        stream.reduce(WORK, new Reduction(List.of(left.pop(), left.pop()), sentOn, Epilogue.NONE));
        left.push(sentOn);
      }
    }
    stream.reduce(WORK, new Reduction(List.copyOf(left), sum, Epilogue.NONE));
  }

  /// Copies, rounding where the types differ, and finishing.
  void copy(Matrix from, Matrix to, Epilogue epilogue) {
    stream.reduce(WORK, new Reduction(List.of(from), to, epilogue));
    synchronize();
  }

  /// Copies as it is, within this rank.
  void keep(Matrix from, Matrix to) {
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

  private static Matrix on(SymmetricMemory all, int rank, DType dtype, int rows, int columns) {
    return Matrix.of(all.on(rank), dtype, rows, columns);
  }

  private int longest(int total) {
    return part(total, 0).rows();
  }

  private Rows part(int total, int rank) {
    var slice = Slice.of(total, place.size(), rank);
    return new Rows(Math.toIntExact(slice.start()), Math.toIntExact(slice.length()));
  }

  private <T extends AutoCloseable> T keep(T resource) {
    made.push(resource);
    return resource;
  }

  @Override
  public void close() {
    Closing.all(made::poll);
  }
}
