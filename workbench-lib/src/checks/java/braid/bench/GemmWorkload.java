package braid.bench;

import braid.ProcessGroup;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Transport;
import braid.natives.cublasmp.CublasMp;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalDouble;

/// A GEMM and its communication.
///
/// @param onGpu whether there are libraries
/// @param goalOnFour goal on 4 ranks; empty if there is none
public record GemmWorkload(
    String name, int ranks, GemmSpec spec, boolean onGpu, OptionalDouble goalOnFour)
    implements Workload {
  private static final int GOAL_RANKS = 4;

  /// Elements per rank of a collective beside a GEMM: 64 MiB.
  private static final int BESIDE = 32 << 20;

  private static final int LARGE_ROWS = 8192;
  private static final int MOST_ROWS = 16384;

  /// Rows of a decoded batch: only an all-reduce can have fewer rows than ranks.
  private static final List<Integer> FEWEST_ROWS = List.of(1, 16);

  private static final int SMALL_ROWS = 64;

  /// Output columns, and depth per rank, of a smaller model's layer.
  private static final int NARROW_COLUMNS = 7168;

  private static final int NARROW_DEPTH = 1536;
  private static final List<Integer> SPLITS = List.of(1, 2, 4, 8);

  /// Libraries that a GPU host usually has.
  private static final List<Transport> LIBRARIES =
      List.of(Transport.NCCL_KERNELS, Transport.NCCL_COPY_ENGINE, Transport.NCCL_SYMMETRIC);

  /// Returns the layers of a large model with 8192 rows, then with other numbers of rows, and the
  /// all-reduce of a smaller model.
  static List<GemmWorkload> all(int ranks, DType dtype, int divisor, boolean onGpu) {
    var all = new ArrayList<GemmWorkload>();
    int hidden = 8192 / divisor;
    int wide = 28672 / divisor;
    all.add(
        of(
            ranks,
            "all-gather GEMM",
            GemmSpec.allGatherGemm(hidden, wide, hidden),
            OptionalDouble.of(1.04)));
    all.add(
        of(
            ranks,
            "GEMM reduce-scatter",
            GemmSpec.gemmReduceScatter(hidden, hidden, wide),
            OptionalDouble.of(1.05)));
    all.add(
        of(
            ranks,
            "GEMM all-reduce",
            GemmSpec.gemmAllReduce(hidden, hidden, 32768 / divisor),
            OptionalDouble.of(1.12)));
    long beside = (long) BESIDE / divisor / divisor * ranks;
    all.add(
        of(
            ranks,
            "GEMM beside all-gather",
            GemmSpec.besideAllGather(hidden, hidden, hidden, beside),
            OptionalDouble.of(1.05)));
    for (int rows = SMALL_ROWS; rows <= MOST_ROWS; rows *= 2) {
      int m = Math.max(ranks, rows / divisor);
      if (rows != LARGE_ROWS) {
        all.add(small(ranks, "all-gather GEMM", GemmSpec.allGatherGemm(m, wide, hidden)));
        all.add(small(ranks, "GEMM reduce-scatter", GemmSpec.gemmReduceScatter(m, hidden, wide)));
      }
    }
    var rows = new ArrayList<>(FEWEST_ROWS);
    for (int more = SMALL_ROWS; more <= MOST_ROWS; more *= 2) {
      rows.add(more);
    }
    int columns = Math.max(1, NARROW_COLUMNS / divisor);
    int depth = Math.max(1, NARROW_DEPTH / divisor) * ranks;
    for (int each : rows) {
      int m = Math.max(1, each / divisor);
      all.add(small(ranks, "GEMM all-reduce", GemmSpec.gemmAllReduce(m, hidden, wide)));
      all.add(small(ranks, "GEMM all-reduce", GemmSpec.gemmAllReduce(m, columns, depth)));
    }
    // A divisor makes some sizes equal.
    var names = new HashSet<String>();
    all.removeIf(each -> !names.add(each.name));
    return all.stream().map(each -> each.with(dtype, onGpu)).toList();
  }

  private GemmWorkload with(DType dtype, boolean libraries) {
    return new GemmWorkload(name, ranks, spec.dtype(dtype), libraries, goalOnFour);
  }

  private static GemmWorkload small(int ranks, String pattern, GemmSpec spec) {
    return of(ranks, pattern, spec, OptionalDouble.empty());
  }

  private static GemmWorkload of(int ranks, String pattern, GemmSpec spec, OptionalDouble goal) {
    return new GemmWorkload(
        "%s %d × %d × %d".formatted(pattern, spec.m(), spec.n(), spec.k()),
        ranks,
        spec,
        false,
        goal);
  }

  @Override
  public List<GemmSpec> problems() {
    return List.of(spec);
  }

  /// Returns all forms of all methods, the unfused one first.
  @Override
  public List<Form> forms() {
    var forms = new ArrayList<>(List.of(Overlap.unfused()));
    if (spec.pattern().beside()) {
      forms.add(Overlap.bulk());
    }
    for (int splits : SPLITS) {
      forms.add(Overlap.pipelined(splits));
      forms.add(Overlap.direct(splits));
      forms.add(Overlap.ring(splits));
      if (Method.DOUBLING.unsupported(spec.pattern()).isEmpty()) {
        forms.add(Overlap.doubling(splits));
      }
    }
    if (!spec.pattern().beside()) {
      if (spec.pattern().reduces()) {
        forms.add(Overlap.direct().over(Transport.ONE_KERNEL));
      }
      if (spec.pattern() != Pattern.GEMM_REDUCE_SCATTER) {
        forms.add(Overlap.unfused().over(Transport.ONE_KERNEL));
      }
    }
    if (onGpu) {
      forms.addAll(byLibraries());
    }
    for (var form : List.copyOf(forms)) {
      forms.add(form.replay());
    }
    return forms.stream().map(form -> Form.of(method(form), form)).toList();
  }

  private List<Overlap> byLibraries() {
    var forms = new ArrayList<Overlap>();
    for (var library : LIBRARIES) {
      for (var form :
          List.of(Overlap.unfused(), Overlap.bulk(), Overlap.pipelined(2), Overlap.pipelined(4))) {
        if (form.method().unsupported(spec.pattern()).isEmpty()
            && library.unsupported(spec.pattern(), form.method()).isEmpty()) {
          forms.add(form.over(library));
        }
      }
    }
    // An all-reduce by cuBLASMp takes another weight, stored transposed.
    if (CublasMp.missing().isEmpty()
        && spec.pattern() != Pattern.GEMM_ALL_REDUCE
        && Transport.CUBLASMP.unsupported(spec.pattern(), Method.PIPELINED).isEmpty()) {
      forms.add(Overlap.pipelined(1).over(Transport.CUBLASMP));
    }
    return forms;
  }

  /// Returns the name of the forms of which the fastest is kept.
  private static String method(Overlap form) {
    return form.transport() == Transport.COPY_ENGINE
        ? form.method().toString()
        : form.transport().toString();
  }

  @Override
  public boolean isPossible(Form form) {
    var tuning = form.tuning().require(Overlap.class, spec);
    if (spec.m() < tuning.splits() || (tuning.transport().multiplies() && !isTaken(tuning))) {
      return false;
    }
    boolean equalParts =
        spec.pattern() == Pattern.GEMM_ALL_REDUCE || spec.m() % (ranks * tuning.splits()) == 0;
    return !tuning.transport().isLibrary() || equalParts;
  }

  private boolean isTaken(Overlap tuning) {
    try {
      tuning.check(spec, ranks);
      return true;
    } catch (BraidException _) {
      return false;
    }
  }

  @Override
  public String alone() {
    return "GEMM alone";
  }

  @Override
  public double flops(String form) {
    if (form.startsWith("all-gather alone")) {
      return 0;
    }
    // Beside a collective, every rank computes a GEMM of these sizes.
    return spec.pattern().beside() ? spec.flops() : spec.flops() / ranks;
  }

  @Override
  public OptionalDouble goal() {
    return ranks == GOAL_RANKS ? goalOnFour : OptionalDouble.empty();
  }

  @Override
  public OpenWorkload open(ProcessGroup group) {
    return new OpenGemm(group, spec);
  }
}
