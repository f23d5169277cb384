package braid.launcher.session;

import braid.evidence.Evidence;
import braid.evidence.ProfileSet;
import braid.evidence.Runs;
import braid.evidence.Study;
import braid.internal.evidence.RankValues;
import braid.internal.report.json.ProfileJson;
import braid.launcher.experiment.Experiment;
import braid.launcher.experiment.Manifest;
import braid.model.BraidException;
import braid.model.Displayable;
import braid.model.Host;
import braid.model.MimeBundle;
import braid.model.Profile;
import java.io.IOException;
import java.nio.file.Path;
import java.util.AbstractList;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import tech.tablesaw.api.Table;

/// Measurements of the ranks, gathered in the front: the k-th profiles of all ranks form the k-th
/// set. Everything is saved under `runs/` immediately. `%%front` cells see it as `profiles`. Only
/// the latest measurements stay in memory; older ones are read again when they are asked for.
public final class GatheredEvidence implements Displayable, AutoCloseable {
  private static final String UNWRITTEN = "the manifest of this run could not be written: ";
  private static final Map<String, GatheredEvidence> BY_NAME = new ConcurrentHashMap<>();

  /// Most unsaved bundles, and MiB of them. A rank that publishes more blocks.
  private static final int ROOM = 64;

  /// Number of the latest measurements that stay in memory.
  static final int MOST_IN_MEMORY = 16;

  private final String name = UUID.randomUUID().toString();
  private final Path directory;
  private volatile @Nullable Experiment experiment;
  private final Consumer<String> complaint;
  private final ExecutorService saver =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().daemon().name("braid-gather").factory());
  private final List<Measured> all = new ArrayList<>();

  /// Number of old measurements that could not be saved and are lost.
  private int dropped;

  private final Semaphore room = new Semaphore(ROOM);

  /// A measurement: in memory if it is one of the latest, and saved unless that failed.
  ///
  /// @param subject what was measured; a later measurement of the same subject replaces it in
  ///   tables
  private record Measured(
      Class<? extends Evidence> type,
      Object subject,
      String headline,
      Optional<Runs.SavedRun> saved,
      Optional<Evidence> inMemory) {
    static Measured of(Evidence evidence, Optional<Runs.SavedRun> saved) {
      var subject =
          switch (evidence) {
            case ProfileSet set -> set.configuration();
            case Study<?> study -> List.of(study.problem(), study.reference(), study.ranks());
          };
      return new Measured(
          evidence.getClass(), subject, evidence.headline(), saved, Optional.of(evidence));
    }

    Measured onDisk() {
      return new Measured(type, subject, headline, saved, Optional.empty());
    }

    Evidence evidence() {
      return inMemory.orElseGet(
          () -> {
            var run = saved.orElseThrow();
            return Runs.in(Objects.requireNonNull(run.directory().getParent())).load(run.id());
          });
    }
  }

  /// Profiles without matches of all ranks of their group: by the group's size, then by rank.
  private final Map<Integer, TreeMap<Integer, ArrayDeque<Profile>>> waiting = new HashMap<>();

  /// Creates the store; `complaint` receives errors of saving.
  GatheredEvidence(Path home, Consumer<String> complaint) {
    directory = home.resolve("runs");
    this.complaint = complaint;
    BY_NAME.put(name, this);
  }

  /// Returns the store of a session, for its `%%front` cells.
  public static GatheredEvidence named(String name) {
    var gathered = BY_NAME.get(name);
    if (gathered == null) {
      throw new BraidException("that session is closed");
    }
    return gathered;
  }

  String name() {
    return name;
  }

  /// Adds a published bundle. Blocks while too much is unsaved, which also blocks the rank.
  void published(MimeBundle bundle) {
    long chars = bundle.data().values().stream().mapToLong(String::length).sum();
    int size = (int) Math.min(ROOM, 1 + (chars >> 20));
    room.acquireUninterruptibly(size);
    try {
      saver.execute(
          () -> {
            try {
              add(bundle);
            } finally {
              room.release(size);
            }
          });
    } catch (RejectedExecutionException e) {
      room.release(size); // the session is closed
    }
  }

  /// Waits until everything published so far is added; profiles that some rank did not send are
  /// dropped.
  void awaitSaved() throws InterruptedException {
    try {
      saver.submit(waiting::clear).get();
    } catch (ExecutionException e) {
      throw new IllegalStateException("gathering failed", e.getCause());
    } catch (RejectedExecutionException e) {
      // The session was closed while its cell ran.
    }
  }

  private void add(MimeBundle bundle) {
    try {
      var profile = bundle.data().get(Profile.MIME);
      if (profile == null) {
        keep(RankValues.evidence(List.of(bundle)));
      } else {
        add(ProfileJson.read(profile));
      }
    } catch (BraidException e) {
      complaint.accept("what a rank measured could not be kept: " + e.getMessage());
    }
  }

  private void add(Profile profile) {
    var place = profile.place();
    var group = waiting.computeIfAbsent(place.size(), size -> new TreeMap<>());
    group.computeIfAbsent(place.rank(), rank -> new ArrayDeque<>()).add(profile);
    if (group.size() == place.size()) {
      var set = group.values().stream().map(ArrayDeque::remove).toList();
      group.values().removeIf(ArrayDeque::isEmpty);
      keep(Optional.of(ProfileSet.of(set)));
    }
  }

  private void keep(Optional<Evidence> evidence) {
    if (evidence.isEmpty()) {
      return;
    }
    Optional<Runs.SavedRun> saved = Optional.empty();
    try {
      saved = Optional.of(save(evidence.get()));
    } finally {
      add(Measured.of(evidence.get(), saved));
    }
  }

  private void add(Measured measured) {
    boolean first = false;
    synchronized (all) {
      all.add(measured);
      int old = all.size() - MOST_IN_MEMORY - 1;
      if (old >= 0 && all.get(old).saved.isPresent()) {
        all.set(old, all.get(old).onDisk());
      } else if (old >= 0) {
        all.remove(old);
        first = dropped++ == 0;
      }
    }
    if (first) {
      complaint.accept(
          "note: this session keeps its latest %d measurements in memory; older ones that could not be saved are dropped"
              .formatted(MOST_IN_MEMORY));
    }
  }

  private List<Measured> measured() {
    synchronized (all) {
      return List.copyOf(all);
    }
  }

  /// Returns the latest measurement of each subject, in the order of their first ones.
  private <T extends Evidence> List<T> latest(Class<T> type) {
    var latest = new LinkedHashMap<Object, Measured>();
    for (var each : measured()) {
      if (each.type.equals(type)) {
        latest.put(each.subject, each);
      }
    }
    return latest.values().stream().map(each -> type.cast(each.evidence())).toList();
  }

  /// Sets the experiment whose manifest lists later measurements. It begins with the first one.
  void recordIn(Experiment kept, List<Host> hosts) {
    try {
      kept.onHosts(hosts);
    } catch (IOException e) {
      complaint.accept(UNWRITTEN + e);
    }
    experiment = kept;
  }

  /// Records a jar or folder that was added to the class path of the compiler and every rank.
  void added(Path jar) {
    var recording = experiment;
    if (recording != null) {
      try {
        recording.added(jar);
      } catch (IOException e) {
        complaint.accept(UNWRITTEN + e);
      }
    }
  }

  /// Saves it in the folder of the run that measured it.
  private Runs.SavedRun save(Evidence evidence) {
    var recording = experiment;
    var folder = directory;
    try {
      if (recording != null) {
        if (!recording.hasBegun()) {
          recording.begin(Optional.empty());
        }
        folder = recording.directory();
      }
    } catch (IOException e) {
      complaint.accept(UNWRITTEN + e);
    }
    var savedRun = Runs.in(folder).save(evidence);
    if (recording != null) {
      try {
        recording.kept(savedRun, evidence);
      } catch (IOException e) {
        complaint.accept(UNWRITTEN + e);
      }
    }
    return savedRun;
  }

  /// Returns the manifest: everything needed to repeat and to trust the results.
  public Manifest manifest() {
    var recording = experiment;
    if (recording == null) {
      throw new BraidException("this session keeps no manifest; braid run and Jupyter do");
    }
    return recording.manifest();
  }

  /// Returns all measurements so far, the oldest first. Those that are only on disk are read when
  /// they are taken from the list.
  public List<Evidence> all() {
    var measured = measured();
    return new AbstractList<>() {
      @Override
      public Evidence get(int index) {
        return measured.get(index).evidence();
      }

      @Override
      public int size() {
        return measured.size();
      }
    };
  }

  /// Returns the latest profile of all ranks.
  public ProfileSet latest() {
    return last(ProfileSet.class, "profiled: pipe.profile(10) does");
  }

  /// The latest profile of each configuration, in the order of their first profiles.
  public List<ProfileSet> sets() {
    return latest(ProfileSet.class);
  }

  /// The latest profile whose configuration has those values, such as a pattern or a method, or a
  /// column with its value: `profiles.of("all-gather-gemm", "ring", "splits=4")`.
  public ProfileSet of(String... values) {
    return sets().reversed().stream()
        .filter(set -> Stream.of(values).allMatch(value -> has(set, value)))
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "no profile's configuration has %s; those of %s were measured"
                        .formatted(
                            String.join(", ", values),
                            sets().stream()
                                .map(set -> String.valueOf(set.configuration().get("pattern")))
                                .distinct()
                                .collect(Collectors.joining(", ")))));
  }

  private static boolean has(ProfileSet set, String value) {
    return set.configuration().entrySet().stream()
        .anyMatch(column -> column.getValue().equals(value) || column.toString().equals(value));
  }

  /// The latest profile of each configuration as one row, see [ProfileSet#compared].
  public Table table() {
    return ProfileSet.compared(sets());
  }

  /// Returns the tuner's latest result.
  public Study<?> study() {
    return last(Study.class, "tuned: Tuner.on(world)...run() does");
  }

  /// Returns the tuner's latest result for each problem, in the order of their first results:
  /// `Study.compared(profiles.studies())` joins them.
  public List<Study<?>> studies() {
    return latest(Study.class).stream().<Study<?>>map(study -> study).toList();
  }

  private <T extends Evidence> T last(Class<T> type, String remedy) {
    return measured().reversed().stream()
        .filter(each -> each.type.equals(type))
        .findFirst()
        .map(each -> type.cast(each.evidence()))
        .orElseThrow(() -> new BraidException("no cell has " + remedy));
  }

  /// Returns everything saved in this directory, also by earlier sessions.
  public Runs runs() {
    return Runs.in(directory);
  }

  @Override
  public MimeBundle display() {
    return Evidence.overview(all());
  }

  @Override
  public String toString() {
    var text = new StringBuilder();
    int number = 0;
    int lost;
    synchronized (all) {
      lost = dropped;
    }
    if (lost > 0) {
      text.append("%d older, which could not be saved, were dropped%n".formatted(lost));
    }
    for (var each : measured()) {
      text.append(number++).append("  ").append(each.headline).append('\n');
    }
    return text.isEmpty() ? "nothing has been measured yet" : text.toString().stripTrailing();
  }

  /// Waits until everything published so far is saved.
  @Override
  public void close() {
    BY_NAME.remove(name);
    saver.close();
    var recording = experiment;
    if (recording != null) {
      try {
        recording.closed();
      } catch (IOException e) {
        System.err.println("braid: " + UNWRITTEN + e);
      }
    }
  }
}
