package braid.internal.cuda;

import braid.internal.work.Work;
import braid.natives.cuda.Gpu;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// The words that a stream waits for on the GPU in the turns that are in flight, as the host sees
/// them: to name the signal that is missing, and to end waits for signals that do not come any
/// more.
public final class AwaitedWords {
  /// What a word must come to, for what, and the rank of the world that raises it.
  public record AwaitedValue(long value, Work work, int raiser) {}

  /// More than are ever in flight: turns of an iteration that broke off are not kept for long.
  private static final int MOST_TURNS = 16;

  private final Gpu gpu;

  /// The oldest first.
  private final Deque<Map<Long, AwaitedValue>> turns = new ArrayDeque<>();

  public AwaitedWords(Gpu gpu) {
    this.gpu = gpu;
  }

  /// Begins a turn behind those in flight.
  public synchronized void turn() {
    if (turns.size() == MOST_TURNS) {
      turns.removeFirst();
    }
    turns.addLast(new LinkedHashMap<>());
  }

  /// All turns but the last `inFlight` are done.
  public synchronized void settled(int inFlight) {
    while (turns.size() > inFlight) {
      turns.removeFirst();
    }
  }

  public synchronized void add(long word, long value, Work work, int raiser) {
    current().put(word, new AwaitedValue(value, work, raiser));
  }

  private Map<Long, AwaitedValue> current() {
    if (turns.isEmpty()) {
      turns.addLast(new LinkedHashMap<>());
    }
    return turns.getLast();
  }

  /// What is waited for in work that was recorded just now.
  public synchronized Map<Long, AwaitedValue> take() {
    var taken = new LinkedHashMap<>(current());
    current().clear();
    return taken;
  }

  /// Those are waited for in this turn.
  public synchronized void replaceTurn(Map<Long, AwaitedValue> recorded) {
    if (!turns.isEmpty()) {
      turns.removeLast();
    }
    turns.addLast(recorded);
  }

  /// The first that is not there.
  public Optional<AwaitedValue> firstMissing() {
    return missing().values().stream().findFirst();
  }

  /// The first that is not there and that one of these ranks raises.
  public Optional<AwaitedValue> firstMissing(Set<Integer> raisers) {
    return missing().values().stream().filter(each -> raisers.contains(each.raiser())).findFirst();
  }

  /// Ends the waits of the oldest turn that waits for words which will not come any more. Recorded
  /// turns wait for two values in turn, so who wants all of them to end asks again until they have.
  public void unblock() {
    missing().forEach((word, each) -> write(word, each.value()));
  }

  /// Of the oldest turn that has any.
  private Map<Long, AwaitedValue> missing() {
    var values = new HashMap<Long, Long>();
    for (var turn : inFlight()) {
      var missing = new LinkedHashMap<Long, AwaitedValue>();
      turn.forEach(
          (word, each) -> {
            long value = values.computeIfAbsent(word, at -> read(at));
            if (!SignalValues.reached(value, each.value())) {
              missing.put(word, each);
            }
          });
      if (!missing.isEmpty()) {
        return missing;
      }
    }
    return Map.of();
  }

  /// The GPU is asked outside the lock, since the thread that enqueues needs it.
  private synchronized Iterable<Map<Long, AwaitedValue>> inFlight() {
    return turns.stream().<Map<Long, AwaitedValue>>map(LinkedHashMap::new).toList();
  }

  /// Reads a word of 64 bits in the GPU's memory, beside all streams.
  private long read(long address) {
    try (var arena = Arena.ofConfined()) {
      gpu.use();
      var word = arena.allocate(ValueLayout.JAVA_LONG);
      gpu.copy(word.address(), address, Long.BYTES);
      return word.get(ValueLayout.JAVA_LONG, 0);
    }
  }

  private void write(long address, long value) {
    try (var arena = Arena.ofConfined()) {
      gpu.use();
      var word = arena.allocateFrom(ValueLayout.JAVA_LONG, value);
      gpu.copy(address, word.address(), Long.BYTES);
    }
  }
}
