package braid;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.GemmSpec;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A second thread of a rank beside one that runs a pipeline: ranks would wait for calls that never
/// come.
class TwoThreadsTest {
  private static final GemmSpec GEMM = GemmSpec.allGatherGemm(16, 8, 8);
  private static final AttentionSpec ATTENTION = AttentionSpec.of(16, 2, 8);

  private interface Second {
    void call(Pipeline link);
  }

  /// While a thread of rank 0 runs the link, since rank 1 is late, its body makes the second call.
  private static void refused(Function<ProcessGroup, Pipeline> build, String call, Second second) {
    var refused = new CountDownLatch(1);
    LocalRanks.run(
        2,
        world -> {
          var link = build.apply(world);
          if (world.rank() == 1) {
            refused.await();
            link.run();
          } else {
            var first = Thread.ofPlatform().name("first").start(link::run);
            while (world.context().waits().current().isEmpty()) {
              Thread.onSpinWait();
            }
            try {
              assertThatThrownBy(() -> second.call(link))
                  .isExactlyInstanceOf(BraidException.class)
                  .hasMessageMatching(
                      "%s.* on thread `rank-0`: thread `first` of this rank is in run of %s; call them from one thread, so that all ranks make the calls in the same order"
                          .formatted(Pattern.quote(call), Pattern.quote(link.toString())));
            } finally {
              refused.countDown();
            }
            first.join();
          }
          link.run();
          link.verify();
        });
  }

  private static Pipeline pipeline(ProcessGroup world) {
    return Pipeline.on(world).gemm(GEMM).build();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"run", "time", "profile", "verify", "timeEnqueuing", "chain", "tuner", "tune"})
  void aSecondCallIsRefusedAndThePipelineStaysUsable(String call) {
    refused(
        TwoThreadsTest::pipeline,
        switch (call) {
          case "chain" -> "run of chain ";
          case "tuner" -> "run of a tuner";
          case "tune" -> "tune of chain";
          default -> call + " of pipeline";
        },
        link -> {
          var world = link.group();
          switch (call) {
            case "run" -> link.run();
            case "time" -> link.time(1);
            case "profile" -> link.profile(1);
            case "verify" -> link.verify();
            case "timeEnqueuing" -> link.timeEnqueuing(1);
            case "chain" -> Chain.of(link).run();
            case "tuner" -> Tuner.on(world).gemm(GEMM).splits(1).run();
            default -> Tuner.on(world).splits(1).tune(Chain.of(link));
          }
        });
  }

  @ParameterizedTest
  @ValueSource(strings = {"run", "verify"})
  void attentionsAreRefusedToo(String call) {
    Second second = call.equals("run") ? Pipeline::run : Pipeline::verify;
    refused(world -> Pipeline.on(world).attention(ATTENTION).build(), call + " of ", second);
    refused(
        world -> {
          var forward = Pipeline.on(world).attention(ATTENTION).build();
          forward.run();
          return Pipeline.on(world).backward(forward).build();
        },
        call + " of ",
        second);
  }
}
