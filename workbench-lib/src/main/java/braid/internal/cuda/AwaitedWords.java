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

/// The words that a stream waits for on the GPU in the turns in flight. The host reads them to name
/// the missing signal, and writes them to end waits for signals that cannot arrive.
public final class AwaitedWords {
  /// Value that a word must reach, the wait's description, and the rank of the world that raises
  /// it.
  public record AwaitedValue(long value, Work work, int raiser) {}

  /// More turns than are ever in flight; bounds what a failed iteration leaves behind.
  private static final int MOST_TURNS = 128;

  private final Gpu gpu;

  /// Awaited words of each turn by address, the oldest turn first.
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

  /// Removes all turns but the last `inFlight`, which are done.
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

  /// Removes and returns the words of the current turn, which were recorded into a graph.
  public synchronized Map<Long, AwaitedValue> take() {
    var taken = new LinkedHashMap<>(current());
    current().clear();
    return taken;
  }

  /// Replaces the current turn's words by those of a graph.
  public synchronized void replaceTurn(Map<Long, AwaitedValue> recorded) {
    if (!turns.isEmpty()) {
      turns.removeLast();
    }
    turns.addLast(recorded);
  }

  /// First signal that is missing.
  public Optional<AwaitedValue> firstMissing() {
    return missing().values().stream().findFirst();
  }

  /// First missing signal that one of these ranks raises.
  public Optional<AwaitedValue> firstMissing(Set<Integer> raisers) {
    return missing().values().stream().filter(each -> raisers.contains(each.raiser())).findFirst();
  }

  /// Ends the waits of the oldest turn that misses signals, by writing the awaited values. Graphs
  /// alternate between two values, so callers repeat this until all work has ended.
  public void unblock() {
    missing().forEach((word, each) -> write(word, each.value()));
  }

  /// Missing signals of the oldest turn that has any.
  private Map<Long, AwaitedValue> missing() {
    var values = new HashMap<Long, Long>();
    for (var turn : inFlight()) {
      var missing = new LinkedHashMap<Long, AwaitedValue>();
      turn.forEach(
          (word, each) -> {
            long value = values.computeIfAbsent(word, this::read);
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

  /// Copies the turns, so that the GPU is read outside the lock, which the enqueuing thread needs.
  private synchronized Iterable<Map<Long, AwaitedValue>> inFlight() {
    return turns.stream().<Map<Long, AwaitedValue>>map(LinkedHashMap::new).toList();
  }

  /// Reads a word of 64 bits in the GPU's memory, independently of all streams.
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
