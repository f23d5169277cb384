package braid;

import braid.model.BackendKind;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.ContextParallel;
import braid.model.GemmSpec.Pattern;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// Combinations that are supported: pattern, method, transport and kind of symmetric memory for
/// overlaps; collective, route and kind for standalone collectives. An unsupported combination
/// names the reason and the nearest one that is supported.
public final class Capabilities {
  private static final String NEEDS_CUDA = "needs CUDA; on the host use native";
  private static final String ROUNDS_BETWEEN_GROUPS = "rounds the sums of the groups";

  private Capabilities() {}

  /// One combination for an overlap.
  ///
  /// @param engine unit that moves the bytes
  /// @param note limits; of an unsupported combination, the reason and the nearest supported one
  public record Row(
      Pattern pattern,
      Method method,
      Transport transport,
      MemoryKind kind,
      boolean supported,
      String engine,
      String note) {}

  /// One combination for a standalone collective.
  public record CollectiveRow(
      Collective collective,
      CollectiveWay way,
      MemoryKind kind,
      boolean supported,
      String engine,
      String note) {}

  /// One combination for attention over a divided sequence, forward and backward.
  public record AttentionRow(
      ContextParallel.Method method,
      Transport transport,
      MemoryKind kind,
      boolean supported,
      String engine,
      String note) {}

  /// Returns every combination on a backend.
  public static List<Row> of(BackendKind backend) {
    Given.check("backend", backend);
    boolean cuda = CollectiveRules.isCuda(backend);
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

  /// Returns the standalone collectives on a backend.
  public static List<CollectiveRow> collectivesOf(BackendKind backend) {
    Given.check("backend", backend);
    var rules = CollectiveRules.of(backend);
    var rows = new ArrayList<CollectiveRow>();
    for (var collective : Collective.values()) {
      for (var way : CollectiveWay.values()) {
        for (var kind : kinds()) {
          var reason = rules.unsupported(collective, way, kind);
          boolean available = reason.isEmpty();
          rows.add(
              new CollectiveRow(
                  collective,
                  way,
                  kind,
                  available,
                  available ? rules.engine(collective, way) : "",
                  available ? CollectiveRules.note(collective, way) : reason));
        }
      }
    }
    return List.copyOf(rows);
  }

  /// Returns the methods of attention on a backend.
  public static List<AttentionRow> attentionOf(BackendKind backend) {
    Given.check("backend", backend);
    boolean cuda = CollectiveRules.isCuda(backend);
    var rows = new ArrayList<AttentionRow>();
    for (var method : ContextParallel.Method.values()) {
      for (var transport : Transport.values()) {
        for (var kind : kinds()) {
          var reason = unreachable(cuda, transport, kind);
          if (cuda && transport.multiplies()) {
            reason = "it exchanges in multiplications only; take over(NCCL_KERNELS)";
          } else if (cuda && transport.isLibrary() && !method.gathers()) {
            reason = "a library runs whole collectives; take allGatherKv(), or over(COPY_ENGINE)";
          }
          boolean supported = reason.isEmpty();
          rows.add(
              new AttentionRow(
                  method,
                  transport,
                  kind,
                  supported,
                  supported ? CollectiveRules.engine(cuda, transport) : "",
                  supported ? note(method, transport) : reason));
        }
      }
    }
    return List.copyOf(rows);
  }

  private static String note(ContextParallel.Method method, Transport transport) {
    return switch (method) {
      case RING, ALL_GATHER_KV, UNFUSED ->
          transport.isLibrary() ? "forward; each rank has as many tokens" : "";
      case ULYSSES, TWO_LEVEL -> "kvHeads must be a multiple of the ranks that exchange heads";
    };
  }

  /// Returns every combination on the host backend.
  public static List<Row> host() {
    return of(BackendKind.HOST);
  }

  /// Returns the combinations as a table, for a front.
  public static Table table(List<Row> rows) {
    Given.check("rows", rows);
    return Table.create(
        "methods",
        StringColumn.create("pattern", rows.stream().map(row -> row.pattern().toString())),
        StringColumn.create("method", rows.stream().map(row -> row.method().toString())),
        StringColumn.create("transport", rows.stream().map(row -> row.transport().toString())),
        StringColumn.create("memory", rows.stream().map(row -> row.kind().toString())),
        StringColumn.create("available", rows.stream().map(row -> row.supported() ? "yes" : "no")),
        StringColumn.create("note", rows.stream().map(Row::note)));
  }

  /// Returns the standalone collectives on the host backend.
  public static List<CollectiveRow> hostCollectives() {
    return collectivesOf(BackendKind.HOST);
  }

  /// Returns every kind of symmetric memory that some backend offers.
  public static List<MemoryKind> kinds() {
    return Arrays.stream(MemoryKind.values()).filter(kind -> kind != MemoryKind.AUTO).toList();
  }

  /// Returns why a transport does not exist on a backend or in a kind of memory; empty if it does.
  private static String unreachable(boolean cuda, Transport transport, MemoryKind kind) {
    if (!cuda && transport.isLibrary()) {
      return "needs CUDA; on the host call over(COPY_ENGINE)";
    }
    return !cuda && kind != MemoryKind.NATIVE
        ? NEEDS_CUDA
        : CollectiveRules.unreachable(transport, kind);
  }

  private static Row row(
      boolean cuda, Pattern pattern, Method method, Transport transport, MemoryKind kind) {
    var reason = method.unsupported(pattern);
    if (reason.isEmpty() && (cuda || !transport.isLibrary())) {
      reason = transport.unsupported(pattern, method);
    }
    if (reason.isEmpty()) {
      reason = unreachable(cuda, transport, kind);
    }
    return new Row(
        pattern,
        method,
        transport,
        kind,
        reason.isEmpty(),
        reason.isEmpty() ? CollectiveRules.engine(cuda, transport) : "",
        reason.isEmpty()
            ? transport.isLibrary() ? byLibrary(pattern, transport) : note(pattern, method)
            : reason);
  }

  private static String byLibrary(Pattern pattern, Transport transport) {
    if (transport.multiplies()) {
      return "in 1 call, equal parts, one type; not tried on GPUs";
    }
    return switch (pattern) {
      case ALL_GATHER_GEMM -> "equal parts; input by rows";
      case GEMM_REDUCE_SCATTER, GEMM_BESIDE_REDUCE_SCATTER -> "equal parts; adds in its own order";
      case GEMM_ALL_REDUCE -> "adds in its own order";
      case GEMM_BESIDE_ALL_GATHER -> "equal parts";
    };
  }

  private static String note(Pattern pattern, Method method) {
    return switch (pattern) {
      case ALL_GATHER_GEMM ->
          switch (method) {
            case RING -> "only links between neighbors; input by rows";
            case DOUBLING -> "input by rows";
            case PIPELINED, DIRECT, TWO_LEVEL, BULK, UNFUSED -> "input by rows";
          };
      case GEMM_REDUCE_SCATTER ->
          switch (method) {
            case RING -> "rounds the sum at every hop";
            case TWO_LEVEL -> ROUNDS_BETWEEN_GROUPS;
            case PIPELINED, DIRECT, DOUBLING, BULK, UNFUSED -> "adds in the order of the ranks";
          };
      case GEMM_ALL_REDUCE ->
          switch (method) {
            case DIRECT -> "one shot: every rank fetches all products and adds them up";
            case RING -> "two rings; rounds the sum at every hop";
            case TWO_LEVEL -> ROUNDS_BETWEEN_GROUPS;
            case PIPELINED, DOUBLING, BULK, UNFUSED ->
                "two shots: sums by their owners, then to all";
          };
      case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER ->
          method == Method.RING && pattern == Pattern.GEMM_BESIDE_REDUCE_SCATTER
              ? "rounds the sum at every hop"
              : "";
    };
  }
}
