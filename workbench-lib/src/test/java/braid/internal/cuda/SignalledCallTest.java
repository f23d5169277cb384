package braid.internal.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.cuda.device.Launch;
import braid.internal.work.Work;
import braid.model.Stage;
import braid.natives.kernels.Handshake;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// In texts, `s` is a signal, `w` a wait, `k` work, and `c` work that joins earlier work.
final class SignalledCallTest {
  private static final int SEQUENCES = 2_000;
  private static final int MOST_STEPS = 60;

  /// Work of which a kernel does one, and others that join it.
  private record Single(Work work, boolean joins) implements SmallWork {
    @Override
    public Stage stage() {
      return Stage.COPY;
    }

    @Override
    public long bytes() {
      return 0;
    }

    @Override
    public Launch launch(Handshake signals) {
      return Launch.NOTHING;
    }

    @Override
    public Optional<SmallWork> with(SmallWork next) {
      return next instanceof Single single && single.joins
          ? Optional.of(new Single(Work.of(() -> work + "c"), false))
          : Optional.empty();
    }
  }

  /// Returns the calls of a lane's steps.
  private static List<SignalledCall> calls(String steps) {
    var calls = new ArrayList<SignalledCall>();
    for (int i = 0; i < steps.length(); i++) {
      var current = calls.isEmpty() ? new SignalledCall(true) : calls.getLast();
      var next = current;
      if (steps.charAt(i) == 'k' || steps.charAt(i) == 'c') {
        next = current.with(new Single(Work.of(() -> "k"), steps.charAt(i) == 'c'));
      } else {
        var word = new SignalledCall.Word(i, steps.charAt(i) == 's' ? null : work(i), 0);
        if (!current.add(word)) {
          next = new SignalledCall(true);
          assertThat(next.add(word)).isTrue();
        }
      }
      if (calls.isEmpty() || next != current) {
        calls.add(next);
      }
    }
    return calls;
  }

  private static Work work(int number) {
    return Work.of(() -> "" + number);
  }

  /// Returns the steps of calls in the order in which kernels and memory operations do them, with a
  /// bar between calls.
  private static String text(List<SignalledCall> calls) {
    return calls.stream()
        .map(
            call ->
                words(call, call.first())
                    + call.work().map(each -> each.work().toString()).orElse("")
                    + words(call, call.last()))
        .collect(Collectors.joining("|"));
  }

  private static String words(SignalledCall call, List<SignalledCall.Word> words) {
    var order = Comparator.comparing(SignalledCall.Word::isRaised).reversed();
    return (call.work().isPresent() ? words.stream().sorted(order) : words.stream())
        .map(word -> word.isRaised() ? "s" : "w")
        .collect(Collectors.joining());
  }

  @ParameterizedTest
  @CsvSource({
    "sswwkssww, sswwkssww",
    "sswwksswwkssww, sswwkss|wwkssww",
    "wsk, w|sk",
    "wks, wks",
    "kk, k|k",
    "wkwsk, wkw|sk",
    "sswwssww, ssww|ssww",
    "ksswwsk, kssww|sk",
    "wkcsw, wkcsw",
    "wkcc, wkcc",
    "wksc, wkcs",
    "wkswc, wks|wk",
  })
  void aKernelJoinsWorkWithItsSignals(String steps, String calls) {
    assertThat(text(calls(steps))).isEqualTo(calls);
  }

  @Test
  void joinedCallsKeepTheOrderOfTheirLane() {
    var random = new Random(Long.getLong("braid.seed", 7));
    for (int i = 0; i < SEQUENCES; i++) {
      var steps =
          random
              .ints(1 + random.nextInt(MOST_STEPS), 0, 5)
              .mapToObj(kind -> kind < 2 ? "s" : kind < 4 ? "w" : "k")
              .collect(Collectors.joining());
      var calls = calls(steps);
      assertThat(text(calls).replace("|", "")).isEqualTo(steps);
      var addresses = new ArrayList<Long>();
      for (var call : calls) {
        call.first().forEach(word -> addresses.add(word.address()));
        call.last().forEach(word -> addresses.add(word.address()));
      }
      assertThat(addresses).isSorted();
    }
  }

  @Test
  void aKernelTakesNoMoreWordsThanItCan() {
    var calls = calls("s".repeat(Handshake.MOST_WORDS + 1) + "k");
    assertThat(text(calls)).isEqualTo("s".repeat(Handshake.MOST_WORDS) + "|sk");
    assertThat(calls.getLast().handshake(0)).isNotNull();
  }

  @Test
  void withoutWorkSignalsAreOneBatchInAnyOrder() {
    var call = new SignalledCall(false);
    for (int i = 0; i < 2 * Handshake.MOST_WORDS; i++) {
      assertThat(call.add(new SignalledCall.Word(i, i % 3 == 0 ? work(i) : null, 0))).isTrue();
    }
    assertThat(call.first()).hasSize(2 * Handshake.MOST_WORDS);
    assertThat(call.last()).isEmpty();
  }
}
