package braid.internal.cuda;

import braid.internal.work.Work;
import braid.natives.cuda.Gpu;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// The words that a stream waits for on the GPU in this turn, as the host sees them: to say which
/// signal is not there, and to end waits for what does not come any more.
public final class AwaitedWords {
  /// What a word must come to, for what, and the rank of the world that raises it.
  public record Awaited(long value, Work work, int raiser) {}

  private final Gpu gpu;
  private final Map<Long, Awaited> given = new LinkedHashMap<>();
  private volatile Map<Long, Awaited> replayed = Map.of();

  public AwaitedWords(Gpu gpu) {
    this.gpu = gpu;
  }

  /// All that was given before is done.
  public void turn() {
    synchronized (given) {
      given.clear();
    }
    replayed = Map.of();
  }

  public void add(long word, long value, Work work, int raiser) {
    synchronized (given) {
      given.put(word, new Awaited(value, work, raiser));
    }
  }

  /// What is waited for in work that was recorded just now.
  public Map<Long, Awaited> take() {
    synchronized (given) {
      var taken = new LinkedHashMap<>(given);
      given.clear();
      return taken;
    }
  }

  /// Those too are waited for in this turn.
  public void also(Map<Long, Awaited> recorded) {
    replayed = recorded;
  }

  /// The first that is not there.
  public Optional<Awaited> firstMissing() {
    return missing().values().stream().findFirst();
  }

  /// The first that is not there and that one of these ranks raises.
  public Optional<Awaited> firstMissing(Set<Integer> raisers) {
    return missing().values().stream().filter(each -> raisers.contains(each.raiser())).findFirst();
  }

  /// Ends waits for words that will not come any more.
  public void unblock() {
    missing().forEach((word, each) -> DeviceWord.write(gpu, word, each.value()));
  }

  private Map<Long, Awaited> missing() {
    Map<Long, Awaited> missing;
    synchronized (given) {
      missing = new LinkedHashMap<>(given);
    }
    missing.putAll(replayed);
    missing
        .entrySet()
        .removeIf(
            each ->
                SignalValues.reached(DeviceWord.read(gpu, each.getKey()), each.getValue().value()));
    return missing;
  }
}
