package braid.internal.cuda;

import braid.internal.work.Work;
import braid.natives.kernels.Handshake;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Consecutive signals and waits of one stream as one driver call: a batch of memory operations. On
/// a lane over [braid.model.Transport#ONE_KERNEL] it joins the copy or the sum between them, and is
/// one kernel:
///
/// ```
/// steps   signal ─ signal ─ wait ─ wait ─ sum ─ copies ─ signal ─ signal ─ wait ─ wait
/// kernel  └ raise ────────┘ └ spin ─────┘ └ add ───────┘ └ raise ────────┘ └ spin ─────┘
/// ```
///
/// Copies join a sum if they pass it on.
///
/// The kernel reads and writes the same words, with the same values, as memory operations do. So
/// peers may use either, replays alternate between the same two values, and a wait that cannot end
/// is ended alike: the host writes the awaited value into the word.
///
/// A kernel raises before it waits. A signal that follows a wait therefore begins another call.
final class SignalledCall {
  private final boolean joins;
  private final List<Word> first = new ArrayList<>();
  private final List<Word> last = new ArrayList<>();
  private @Nullable SmallWork work;
  private @Nullable Handshake handshake;

  /// A word that the stream raises or waits for.
  ///
  /// @param awaiting describes the wait; null if the word is raised
  /// @param raiser rank of the world that raises the word
  record Word(long address, @Nullable Work awaiting, int raiser) {
    boolean isRaised() {
      return awaiting == null;
    }
  }

  /// @param joins true if work joins the words
  SignalledCall(boolean joins) {
    this.joins = joins;
  }

  /// Adds a word after all that was added. Returns false if it must be part of the next call.
  boolean add(Word word) {
    var words = work == null ? first : last;
    if (joins) {
      long alike = words.stream().filter(each -> each.isRaised() == word.isRaised()).count();
      if (alike == Handshake.MOST_WORDS
          || (word.isRaised() && !words.stream().allMatch(Word::isRaised))) {
        return false;
      }
    }
    return words.add(word);
  }

  /// Adds work after all words. Returns the call that does it: this one, or one that takes over the
  /// waits after the work of this one, where all blocks can wait at once. Signals between two works
  /// of one kernel are raised after both.
  SignalledCall with(SmallWork added) {
    var earlier = work;
    if (earlier == null) {
      work = added;
      return this;
    }
    var both =
        last.stream().allMatch(Word::isRaised) ? earlier.with(added) : Optional.<SmallWork>empty();
    if (both.isPresent()) {
      work = both.get();
      return this;
    }
    var next = new SignalledCall(joins);
    next.first.addAll(last.stream().filter(word -> !word.isRaised()).toList());
    next.work = added;
    last.removeAll(next.first);
    return next;
  }

  /// Returns the work; without it, the call is a batch of memory operations.
  Optional<SmallWork> work() {
    return Optional.ofNullable(work);
  }

  /// Returns the words before the work, in order.
  List<Word> first() {
    return first;
  }

  /// Returns the words after the work, in order.
  List<Word> last() {
    return last;
  }

  /// Returns the signals of the kernel, once all words are added.
  ///
  /// @param arrived address of the counter of blocks
  Handshake handshake(long arrived) {
    var signals = handshake;
    if (signals == null) {
      signals =
          new Handshake(
              arrived,
              addresses(first, Word::isRaised),
              addresses(first, word -> !word.isRaised()),
              addresses(last, Word::isRaised),
              addresses(last, word -> !word.isRaised()));
      handshake = signals;
    }
    return signals;
  }

  private static List<Long> addresses(List<Word> words, Predicate<Word> included) {
    return words.stream().filter(included).map(Word::address).toList();
  }
}
