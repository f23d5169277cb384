package braid;

import braid.model.BraidException;
import braid.model.CollectiveWay;
import braid.model.GemmSpec.Pattern;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// What there is: which pattern can be overlapped by which method, over which transport, in which
/// kind of symmetric memory; and the same for collectives by themselves. What is not there says why
/// and what is nearest.
public final class Capabilities {
  private static final String HOST = "host";
  private static final String CUDA = "cuda";
  private static final String NEEDS_CUDA = "needs CUDA; on the host take native";

  private Capabilities() {}

  /// One way to overlap.
  ///
  /// @param engine what moves the bytes
  /// @param note limits; where it is not supported, why, and what is nearest
  public record Row(
      Pattern pattern,
      Method method,
      Transport transport,
      MemoryKind kind,
      boolean supported,
      String engine,
      String note) {}

  /// A collective by itself.
  public record CollectiveRow(
      String collective,
      CollectiveWay way,
      MemoryKind kind,
      boolean supported,
      String engine,
      String note) {
    /// Whether it adds what the ranks have, which not every library does in every type.
    public boolean adds() {
      return CollectiveRules.adds(collective);
    }
  }

  /// Every combination, on the backend of that name.
  public static List<Row> of(String backend) {
    boolean cuda = isCuda(backend);
    var rows = new ArrayList<Row>();
    for (var pattern : Pattern.values()) {
      for (var method : Method.values()) {
        for (var transport : Transport.values()) {
          for (var kind : kinds()) {
            rows.add(row(cuda, pattern, method, transport, kind));
          }
        }
      }
    }
    return List.copyOf(rows);
  }

  /// The collectives by themselves, on the backend of that name.
  public static List<CollectiveRow> collectivesOf(String backend) {
    return CollectiveRules.of(backend).rows();
  }

  /// Whether that is the backend of GPUs.
  static boolean isCuda(String backend) {
    return switch (backend) {
      case HOST -> false;
      case CUDA -> true;
      default ->
          throw new BraidException(
              "a backend whose capabilities are known must be host or cuda but was %s"
                  .formatted(backend));
    };
  }

  /// Every combination, on the host backend.
  public static List<Row> host() {
    return of(HOST);
  }

  /// Those combinations as a table, for a front.
  public static Table table(List<Row> rows) {
    return Table.create(
        "methods",
        StringColumn.create("pattern", rows.stream().map(row -> row.pattern().toString())),
        StringColumn.create("method", rows.stream().map(row -> row.method().toString())),
        StringColumn.create("transport", rows.stream().map(row -> row.transport().toString())),
        StringColumn.create("memory", rows.stream().map(row -> row.kind().toString())),
        StringColumn.create("available", rows.stream().map(row -> row.supported() ? "yes" : "no")),
        StringColumn.create("note", rows.stream().map(Row::note)));
  }

  /// The collectives by themselves, on the host backend.
  public static List<CollectiveRow> hostCollectives() {
    return collectivesOf(HOST);
  }

  /// Every kind of symmetric memory that can be had somewhere.
  public static List<MemoryKind> kinds() {
    return Arrays.stream(MemoryKind.values()).filter(kind -> kind != MemoryKind.AUTO).toList();
  }

  private static Row row(
      boolean cuda, Pattern pattern, Method method, Transport transport, MemoryKind kind) {
    var hole = hole(pattern, method);
    if (hole.isEmpty() && !cuda && kind != MemoryKind.NATIVE) {
      hole = NEEDS_CUDA;
    }
    return new Row(
        pattern,
        method,
        transport,
        kind,
        hole.isEmpty(),
        hole.isEmpty() ? engine(cuda, transport) : "",
        hole.isEmpty() ? note(pattern, method) : hole);
  }

  /// Why that method is no way to overlap that pattern; nothing where it is one.
  static String hole(Pattern pattern, Method method) {
    return method == Method.BULK && !pattern.beside()
        ? "the multiplication needs what is communicated, so they cannot run beside each other in one"
            + " piece; the nearest is pipelined(1)"
        : "";
  }

  /// What moves the bytes.
  static String engine(boolean cuda, Transport transport) {
    return switch (transport) {
      case COPY_ENGINE ->
          cuda
              ? "copy engine: DMA between GPUs, no multiprocessor"
              : "a thread that sleeps while the link is busy";
      case WORKERS ->
          cuda
              ? "our copy kernels on as many blocks as there are workers, in bulk where they can"
              : "threads that keep the rank's cores busy while the link is";
    };
  }

  private static String note(Pattern pattern, Method method) {
    return switch (pattern) {
      case ALL_GATHER_GEMM ->
          method == Method.RING ? "only links between neighbours; input by rows" : "input by rows";
      case GEMM_REDUCE_SCATTER ->
          method == Method.RING ? "rounds the sum at every hop" : "adds in the order of the ranks";
      case GEMM_ALL_REDUCE ->
          switch (method) {
            case DIRECT -> "one shot: every rank fetches all products and adds them up";
            case RING -> "two rings; rounds the sum at every hop";
            case PIPELINED, BULK, UNFUSED -> "two shots: sums by their owners, then to all";
          };
      case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER ->
          method == Method.RING && pattern == Pattern.GEMM_BESIDE_REDUCE_SCATTER
              ? "rounds the sum at every hop"
              : "";
    };
  }
}
