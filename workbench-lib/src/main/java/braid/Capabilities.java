package braid;

import braid.GemmSpec.Pattern;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// What there is: which pattern can be overlapped by which method, over which transport, in which
/// kind of symmetric memory; and the same for collectives by themselves. What is not there says why
/// and what is nearest.
public final class Capabilities {
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
      Transport transport,
      MemoryKind kind,
      boolean supported,
      String engine,
      String note) {}

  /// Every combination, on the backend of that name.
  public static List<Row> of(String backend) {
    return switch (backend) {
      case "host" -> host();
      default -> throw unknown(backend);
    };
  }

  /// The collectives by themselves, on the backend of that name.
  public static List<CollectiveRow> collectivesOf(String backend) {
    return switch (backend) {
      case "host" -> hostCollectives();
      default -> throw unknown(backend);
    };
  }

  private static BraidException unknown(String backend) {
    return new BraidException(
        "a backend whose capabilities are known must be host but was %s".formatted(backend));
  }

  /// Every combination, on the host backend.
  public static List<Row> host() {
    var rows = new ArrayList<Row>();
    for (var pattern : Pattern.values()) {
      for (var method : Method.values()) {
        for (var transport : Transport.values()) {
          for (var kind : kinds()) {
            rows.add(row(pattern, method, transport, kind));
          }
        }
      }
    }
    return List.copyOf(rows);
  }

  /// The collectives by themselves, on the host backend.
  public static List<CollectiveRow> hostCollectives() {
    var rows = new ArrayList<CollectiveRow>();
    for (var collective : Collectives.NAMES) {
      for (var transport : Transport.values()) {
        for (var kind : kinds()) {
          boolean there = kind == MemoryKind.NATIVE;
          rows.add(
              new CollectiveRow(
                  collective,
                  transport,
                  kind,
                  there,
                  there ? engine(collective, transport) : "",
                  there ? collectiveNote(collective) : NEEDS_CUDA));
        }
      }
    }
    return List.copyOf(rows);
  }

  private static List<MemoryKind> kinds() {
    return Arrays.stream(MemoryKind.values()).filter(kind -> kind != MemoryKind.AUTO).toList();
  }

  private static Row row(Pattern pattern, Method method, Transport transport, MemoryKind kind) {
    var hole = hole(pattern, method);
    if (hole.isEmpty() && kind != MemoryKind.NATIVE) {
      hole = NEEDS_CUDA;
    }
    return new Row(
        pattern,
        method,
        transport,
        kind,
        hole.isEmpty(),
        hole.isEmpty() ? engine(transport) : "",
        hole.isEmpty() ? note(pattern, method) : hole);
  }

  /// Why that method is no way to overlap that pattern; nothing where it is one.
  static String hole(Pattern pattern, Method method) {
    return method == Method.BULK && !pattern.beside()
        ? "the multiplication needs what is communicated, so they cannot run beside each other in one"
            + " piece; the nearest is splits(1)"
        : "";
  }

  private static String engine(String collective, Transport transport) {
    return switch (collective) {
      case "barrier" -> "signals; nothing is moved";
      case "send" -> "the receiver's";
      default -> engine(transport);
    };
  }

  private static String collectiveNote(String collective) {
    return switch (collective) {
      case "all-gather" -> "every rank fetches from all others";
      case "reduce-scatter" -> "adds in fp32 in the order of the ranks, rounds once";
      case "all-reduce" -> "two shots: sums by their owners, then to all; also in place";
      case "all-to-all" -> "x and y are two tensors";
      case "broadcast" -> "every rank fetches from the root";
      case "send" -> "returns when it is received; rings say sendReceive";
      case "receive" -> "copies out of the sender's tensor";
      default -> "";
    };
  }

  private static String engine(Transport transport) {
    return switch (transport) {
      case COPY_ENGINE -> "a thread that sleeps while the link is busy";
      case WORKERS -> "threads that keep the rank's cores busy while the link is";
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
