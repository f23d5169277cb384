package braid.launcher.session;

import braid.evidence.Evidence;
import braid.evidence.ProfileSet;
import braid.evidence.Runs;
import braid.evidence.Study;
import braid.internal.evidence.HandedOver;
import braid.internal.report.json.ProfileJson;
import braid.launcher.experiment.Experiment;
import braid.launcher.experiment.Manifest;
import braid.model.BraidException;
import braid.model.Displayable;
import braid.model.MimeBundle;
import braid.model.Profile;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
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

/// What the ranks measured, brought together in the front: the k-th profile of every rank makes the
/// k-th set. Everything is saved under `runs/` as it comes. In `%%front` cells this is `profiles`.
public final class Gathered implements Displayable, AutoCloseable {
  private static final String UNWRITTEN = "the manifest of this run could not be written: ";
  private static final Map<String, Gathered> BY_NAME = new ConcurrentHashMap<>();

  /// Most bundles, and most MiB, that wait to be saved. A rank that hands over more waits.
  private static final int ROOM = 64;

  private final String name = UUID.randomUUID().toString();
  private final Path directory;
  private volatile @Nullable Experiment experiment;
  private final Consumer<String> complaint;
  private final ExecutorService inOrder =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().daemon().name("braid-gather").factory());
  private final List<Evidence> all = new ArrayList<>();
  private final Semaphore room = new Semaphore(ROOM);

  /// Profiles that others of their group have not matched yet: by the group's size, then by rank.
  private final Map<Integer, TreeMap<Integer, ArrayDeque<Profile>>> waiting = new HashMap<>();

  /// `complaint` hears what could not be saved.
  Gathered(Path home, Consumer<String> complaint) {
    directory = home.resolve("runs");
    this.complaint = complaint;
    BY_NAME.put(name, this);
  }

  /// How a `%%front` cell gets hold of its session's.
  public static Gathered named(String name) {
    var gathered = BY_NAME.get(name);
    if (gathered == null) {
      throw new BraidException("that session is closed");
    }
    return gathered;
  }

  String name() {
    return name;
  }

  /// Takes what a rank handed over. Waits while more comes than can be saved, which holds the rank
  /// back.
  void published(MimeBundle bundle) {
    long chars = bundle.data().values().stream().mapToLong(String::length).sum();
    int size = (int) Math.min(ROOM, 1 + (chars >> 20));
    room.acquireUninterruptibly(size);
    try {
      inOrder.execute(
          () -> {
            try {
              add(bundle);
            } finally {
              room.release(size);
            }
          });
    } catch (RejectedExecutionException e) {
      room.release(size); // the session is closed, and nobody looks at it any more
    }
  }

  /// Waits until everything published so far is here; profiles that some rank did not send are
  /// given up.
  void settle() throws InterruptedException {
    try {
      inOrder.submit(waiting::clear).get();
    } catch (ExecutionException e) {
      throw new IllegalStateException("gathering failed", e.getCause());
    } catch (RejectedExecutionException e) {
      // The session was closed while its cell ran; nobody will ask for what comes now.
    }
  }

  private void add(MimeBundle bundle) {
    try {
      var profile = bundle.data().get(Profile.MIME);
      if (profile == null) {
        keep(HandedOver.evidence(List.of(bundle)));
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
    if (evidence.isPresent()) {
      synchronized (all) {
        all.add(evidence.get());
      }
      save(evidence.get());
    }
  }

  /// Whose manifest names what is measured from now on. One that has not begun does so with it.
  void recordIn(Experiment kept) {
    experiment = kept;
  }

  /// A jar or folder is on the class path of the compiler and of every rank.
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
  private void save(Evidence evidence) {
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
  }

  /// What it takes to repeat this and to trust it.
  public Manifest manifest() {
    var recording = experiment;
    if (recording == null) {
      throw new BraidException("this session keeps no manifest; braid run and Jupyter do");
    }
    return recording.manifest();
  }

  /// Everything so far, the oldest first.
  public List<Evidence> all() {
    synchronized (all) {
      return List.copyOf(all);
    }
  }

  /// What all ranks did in the latest profile.
  public ProfileSet latest() {
    return last(ProfileSet.class, "profiled: pipe.profile(10) does");
  }

  /// The latest profile of each configuration, in the order of their first profiles.
  public List<ProfileSet> sets() {
    var latest = new LinkedHashMap<SequencedMap<String, String>, ProfileSet>();
    for (var evidence : all()) {
      if (evidence instanceof ProfileSet set) {
        latest.put(set.configuration(), set);
      }
    }
    return List.copyOf(latest.values());
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

  /// The tuner's latest result.
  public Study study() {
    return last(Study.class, "tuned: Tuner.on(world)...run() does");
  }

  private <T extends Evidence> T last(Class<T> type, String remedy) {
    @Nullable T found = null;
    for (var evidence : all()) {
      if (type.isInstance(evidence)) {
        found = type.cast(evidence);
      }
    }
    if (found == null) {
      throw new BraidException("no cell has " + remedy);
    }
    return found;
  }

  /// Everything that was ever saved here, this session's and earlier ones'.
  public Runs runs() {
    return Runs.in(directory);
  }

  @Override
  public MimeBundle display() {
    return MimeBundle.text(toString());
  }

  @Override
  public String toString() {
    var text = new StringBuilder();
    int number = 0;
    for (var evidence : all()) {
      text.append(number++).append("  ").append(evidence.headline()).append('\n');
    }
    return text.isEmpty() ? "nothing has been measured yet" : text.toString().stripTrailing();
  }

  @Override
  public void close() {
    BY_NAME.remove(name);
    inOrder.shutdown();
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
