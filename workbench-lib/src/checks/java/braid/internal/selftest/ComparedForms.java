package braid.internal.selftest;

import braid.Pipeline;
import braid.internal.context.RankContext;
import braid.internal.rank.Closing;
import braid.internal.report.statistics.RankTimes;
import braid.internal.report.statistics.Spread;
import braid.model.BackendKind;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Timing;
import braid.model.Transport;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// Forms of one problem that the seeds compared. Each form must compute the right numbers, and its
/// profile must show what makes it that form. If each rank has a GPU of its own, the sizes are the
/// seeds', and all forms are timed in turns. Their times and ratios are the result of the case; no
/// ratio is asserted, since clocks decide it.
public enum ComparedForms {
  /// Chunks of a GEMM → all-reduce over one stream, two, and one per chunk.
  STREAMS("compared-streams"),

  /// The output of a GEMM → all-reduce in this rank's memory, and in symmetric memory.
  SYMMETRIC_OUTPUT("compared-symmetric-output"),

  /// A GEMM and an all-gather of other data: one after the other, and beside each other over
  /// workers and over copy engines.
  TRANSPORTS("compared-transports");

  /// Begin of the names of all cases.
  public static final String WHAT = "compared";

  public static final DType DTYPE = DType.FP16;

  private static final int CHUNKS = 8;

  /// Rows, columns and depth, where ranks have GPUs of their own and elsewhere.
  private static final int SIZE = 8192;

  private static final int SMALL_SIZE = 256;

  /// Numbers that all ranks together gather: 64 MiB, and few.
  private static final long GATHERED = 32L << 20;

  private static final long FEW_GATHERED = 32L << 10;

  /// Share of the communication by which the clocks of streams may disagree.
  private static final double CLOCK_ERROR = 0.02;

  private static final int ROUNDS = 5;
  private static final int ITERATIONS = 8;
  private static final double NANOS_PER_MILLI = 1e6;

  private final String subject;

  ComparedForms(String subject) {
    this.subject = subject;
  }

  private record Form(String name, Overlap tuning) {}

  private List<Form> forms() {
    var chunks = Overlap.pipelined(CHUNKS);
    return switch (this) {
      case STREAMS ->
          List.of(
              new Form("1 stream", chunks.streams(1)),
              new Form("2 streams", chunks.streams(2)),
              new Form("1 per chunk", chunks.streams(CHUNKS)));
      case SYMMETRIC_OUTPUT ->
          List.of(
              new Form("own output", chunks),
              new Form("symmetric output", chunks.outputInSymmetricMemory()));
      case TRANSPORTS ->
          List.of(
              new Form("one after the other", Overlap.unfused()),
              new Form("over workers", Overlap.bulk().over(Transport.WORKERS)),
              new Form("over copy engines", Overlap.bulk()));
    };
  }

  /// Returns why a group of so many ranks compares nothing; empty if it does.
  public static Optional<String> missing(int ranks) {
    return ranks == 1
        ? Optional.of("one rank has nothing to communicate; run with -n 2 or more")
        : Optional.empty();
  }

  public String subject() {
    return subject;
  }

  private GemmSpec spec(boolean timed) {
    int size = timed ? SIZE : SMALL_SIZE;
    var spec =
        this == TRANSPORTS
            ? GemmSpec.besideAllGather(size, size, size, timed ? GATHERED : FEW_GATHERED)
            : GemmSpec.gemmAllReduce(size, size, size);
    return spec.dtype(DTYPE);
  }

  /// Runs the case on this rank and returns the times, the same text on all ranks. All ranks of the
  /// group call it together. Throws [CaseFailed] if a form is wrong, after the last call that the
  /// ranks make together.
  public String check(CaseContext context) {
    var backend = RankContext.current().backend();
    boolean timed = backend.kind() == BackendKind.CUDA && backend.ranksPerDevice() == 1;
    var findings = new Findings();
    var opened = new ArrayDeque<AutoCloseable>();
    String text;
    try {
      var pipes = new ArrayList<Pipeline>();
      for (var form : forms()) {
        var pipe =
            Pipeline.on(context.group())
                .gemm(spec(timed))
                .overlap(form.tuning())
                .memory(context.kind())
                .build();
        opened.push(pipe);
        pipes.add(pipe);
        PipelineCase.verify(pipe, findings);
        var fault = fault(form.tuning(), pipe.profile(1), timed);
        fault.ifPresent(each -> findings.found("%s, %s: %s".formatted(subject, form.name(), each)));
      }
      text = timed ? times(context, pipes) : "";
    } catch (RuntimeException | Error e) {
      Closing.after(e, () -> Closing.all(opened::poll));
      throw e;
    }
    Closing.all(opened::poll);
    findings.orThrow();
    return text;
  }

  /// Returns what the profile lacks to be of that form; empty if it shows it.
  Optional<String> fault(Overlap form, Profile profile, boolean timed) {
    return switch (this) {
      case STREAMS -> {
        long streams = spans(profile, Stage.GEMM).stream().map(Span::stream).distinct().count();
        int wanted = form.streams();
        yield streams == wanted
            ? Optional.empty()
            : Optional.of(
                "its products must run on %d streams but ran on %d".formatted(wanted, streams));
      }
      case SYMMETRIC_OUTPUT -> {
        int copies = spans(profile, Stage.LOCAL).size();
        yield form.symmetricOutput() && copies > 0
            ? Optional.of("no copy within the rank may run but %d did".formatted(copies))
            : Optional.empty();
      }
      case TRANSPORTS -> {
        // A host that records may enqueue the GEMM when the all-gather has ended, so that forms
        // which may overlap need not.
        double share = RankTimes.of(profile).overlappedToCommunication();
        yield timed && form.method() == Method.UNFUSED && share > CLOCK_ERROR
            ? Optional.of("%.0f%% of the all-gather ran beside the GEMM".formatted(share * 100))
            : Optional.empty();
      }
    };
  }

  private static List<Span> spans(Profile profile, Stage stage) {
    return profile.spans().stream().filter(span -> span.stage() == stage).toList();
  }

  /// Times all forms in turns and returns the median of each on its slowest rank, with its ratio to
  /// the first form.
  private String times(CaseContext context, List<Pipeline> pipes) {
    var samples = new ArrayList<List<Long>>();
    for (var pipe : pipes) {
      samples.add(new ArrayList<>());
      pipe.input().fillRandom(context.group().rank());
      pipe.weight().fillRandom(SIZE + context.group().rank());
    }
    for (int round = 0; round < ROUNDS; round++) {
      for (int i = 0; i < pipes.size(); i++) {
        for (long sample : pipes.get(i).time(ITERATIONS, Timing.BACK_TO_BACK)) {
          samples.get(i).add(sample);
        }
      }
    }
    var times = new ArrayList<String>();
    double first = Double.NaN;
    for (int i = 0; i < pipes.size(); i++) {
      var mine = samples.get(i).stream().mapToLong(Long::longValue).toArray();
      double median = Spread.quantile(mine, 0.5);
      double slowest = Arrays.stream(context.group().gather(median)).max().orElseThrow();
      first = i == 0 ? slowest : first;
      times.add(
          String.format(
              Locale.ROOT,
              "%s %.3f ms%s",
              forms().get(i).name(),
              slowest / NANOS_PER_MILLI,
              i == 0 ? "" : String.format(Locale.ROOT, " (× %.3f)", slowest / first)));
    }
    return String.join(", ", times);
  }
}
