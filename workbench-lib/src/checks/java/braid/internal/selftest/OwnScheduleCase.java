package braid.internal.selftest;

import braid.Pipeline;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.schedule.Schedule;
import java.util.ArrayList;
import java.util.List;

/// A schedule that is written by hand, run by a pipeline and compared with plain loops.
///
/// @param isReplayed true to record an iteration and replay it
public record OwnScheduleCase(Form form, DType dtype, boolean isReplayed) implements TabledCase {
  /// The schedules.
  public enum Form {
    TWO_LEVELS("two-level-all-gather"),
    CHUNKS("chunked-all-gather"),
    SUM("reduce-scatter");

    private final String text;

    Form(String text) {
      this.text = text;
    }
  }

  private static final int CHUNKS = 3;
  private static final int M = 26;
  private static final int N = 9;
  private static final int K = 8;

  /// Returns every form in every type, enqueued and replayed.
  public static List<OwnScheduleCase> table() {
    var cases = new ArrayList<OwnScheduleCase>();
    for (var form : Form.values()) {
      for (var dtype : AttentionCase.DTYPES) {
        cases.add(new OwnScheduleCase(form, dtype, false));
        cases.add(new OwnScheduleCase(form, dtype, true));
      }
    }
    return cases;
  }

  /// Returns one case per form and type; one type is replayed.
  public static List<OwnScheduleCase> quick() {
    return table().stream().filter(each -> each.isReplayed == (each.dtype == DType.BF16)).toList();
  }

  private GemmSpec spec() {
    var spec =
        switch (form) {
          case TWO_LEVELS, CHUNKS -> GemmSpec.allGatherGemm(M, N, K);
          case SUM -> GemmSpec.gemmReduceScatter(M, N, K);
        };
    return spec.dtype(dtype);
  }

  private Schedule schedule(int ranks) {
    return switch (form) {
      case TWO_LEVELS -> WrittenSchedules.twoLevel(spec(), ranks, ranks % 2 == 0 ? 2 : 1);
      case CHUNKS -> WrittenSchedules.reversed(spec(), ranks, CHUNKS);
      case SUM -> WrittenSchedules.reduceScatter(spec(), ranks, _ -> true);
    };
  }

  @Override
  public String what() {
    return "own-schedule";
  }

  @Override
  public String method() {
    return form.text;
  }

  @Override
  public String text() {
    return "own-schedule, %s of %s%s".formatted(form.text, spec(), isReplayed ? ", replayed" : "");
  }

  @Override
  public Opened open(CaseContext context, Findings findings) {
    var schedule = schedule(context.group().size());
    var pipe =
        Pipeline.on(context.group())
            .schedule(isReplayed ? schedule.replay() : schedule)
            .memory(context.kind())
            .build();
    return new PipelineCase(spec(), Overlap.unfused())
        .open(pipe, part -> PipelineCase.tensor(pipe, part), context, findings);
  }
}
