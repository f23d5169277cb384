package braid.launcher.session;

import braid.launcher.machine.BackendChoice;
import braid.launcher.output.OutputLimit;
import braid.launcher.ranks.LocalRanks;
import braid.launcher.ranks.RankStarter;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.MemoryKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;

/// Options of a session. `link` is the host backend's simulated link as the user wrote it, for
/// example `2GB/s,20us`; `home` is the directory of `runs/`; `outputLimit` is the limit of a cell's
/// output; `memory` is the default kind of symmetric memory, if it is not the environment's;
/// `untilDecided` is the time in which all studies together may measure until they are decided;
/// `variables` are variables of the ranks that replace those of this process; `starter` starts the
/// ranks.
public record SessionOptions(
    int ranks,
    BackendChoice backend,
    Optional<String> link,
    Path home,
    OutputLimit outputLimit,
    Optional<MemoryKind> memory,
    Optional<Duration> untilDecided,
    SortedMap<String, String> variables,
    RankStarter starter) {
  public SessionOptions {
    variables = Collections.unmodifiableSortedMap(new TreeMap<>(variables));
  }

  /// Uses the default output limit and the environment's kind of memory.
  public SessionOptions(int ranks, BackendChoice backend, Optional<String> link, Path home) {
    this(
        ranks,
        backend,
        link,
        home,
        OutputLimit.DEFAULT,
        Optional.empty(),
        Optional.empty(),
        new TreeMap<>(),
        LocalRanks.HERE);
  }

  /// Uses the backend `host` or `cuda`, set in code.
  public SessionOptions(int ranks, BackendKind backend, Optional<String> link, Path home) {
    this(ranks, new BackendChoice(backend, "set in code"), link, home);
  }

  public SessionOptions outputLimit(OutputLimit limit) {
    return new SessionOptions(
        ranks, backend, link, home, limit, memory, untilDecided, variables, starter);
  }

  /// @param from option with the kind, for messages
  /// @throws BraidException if the backend does not have the kind
  public SessionOptions memory(String from, MemoryKind kind) {
    if (!backend.isCuda() && kind != MemoryKind.AUTO && kind != MemoryKind.NATIVE) {
      throw new BraidException(
          "%s %s needs CUDA but the backend is %s; choose native or auto"
              .formatted(from, kind, backend));
    }
    return new SessionOptions(
        ranks,
        backend,
        link,
        home,
        outputLimit,
        Optional.of(kind),
        untilDecided,
        variables,
        starter);
  }

  public SessionOptions untilDecided(Duration limit) {
    return new SessionOptions(
        ranks, backend, link, home, outputLimit, memory, Optional.of(limit), variables, starter);
  }

  public SessionOptions variables(SortedMap<String, String> others) {
    return new SessionOptions(
        ranks, backend, link, home, outputLimit, memory, untilDecided, others, starter);
  }

  public SessionOptions starter(RankStarter chosen) {
    return new SessionOptions(
        ranks, backend, link, home, outputLimit, memory, untilDecided, variables, chosen);
  }
}
