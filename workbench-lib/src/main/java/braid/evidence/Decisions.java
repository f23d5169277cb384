package braid.evidence;

import braid.internal.rank.Env;
import braid.internal.report.HtmlTable;
import braid.internal.report.TableTypes;
import braid.model.BraidException;
import braid.model.Displayable;
import braid.model.MimeBundle;
import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// Decisions that are kept in a folder, one file per problem and machine. `Overlap.auto()` takes
/// its tunings from [#kept].
public final class Decisions implements Displayable {
  /// Folder of the decisions in the cache.
  public static final String FOLDER = "decisions";

  private static final String SUFFIX = ".json";
  private static final int NAME_CHARACTERS = 48;
  private static final int HASH_BYTES = 4;

  private final Path directory;

  private Decisions(Path directory) {
    this.directory = directory;
  }

  /// Returns the decisions in the cache folder, `BRAID_CACHE`.
  public static Decisions kept() {
    return in(Env.ofProcess().cache().resolve(FOLDER));
  }

  /// Returns the decisions in a folder, which need not exist.
  public static Decisions in(Path directory) {
    return new Decisions(directory);
  }

  /// Returns all decisions, by problem.
  ///
  /// @throws BraidException if a file cannot be read
  public List<Decision> all() {
    try (var files = Files.list(directory)) {
      return files
          .filter(file -> file.getFileName().toString().endsWith(SUFFIX))
          .map(Decisions::read)
          .flatMap(Optional::stream)
          .sorted(
              Comparator.comparing(Decision::problem)
                  .thenComparing(decision -> decision.setting().toString()))
          .toList();
    } catch (NoSuchFileException e) {
      return List.of();
    } catch (IOException e) {
      throw unusable("read", e);
    }
  }

  /// Returns the decision for a problem on a machine.
  public Optional<Decision> find(SequencedMap<String, String> setting) {
    return read(file(setting)).filter(decision -> decision.setting().equals(setting));
  }

  /// Keeps a decision, in place of an earlier one for the same problem and machine.
  public void keep(Decision decision) {
    try {
      Files.createDirectories(directory);
      WholeFile.write(file(decision.setting()), decision.toJson());
    } catch (IOException e) {
      throw unusable("written", e);
    }
  }

  /// Deletes a decision; returns false if it is not kept.
  public boolean forget(Decision decision) {
    try {
      return Files.deleteIfExists(file(decision.setting()));
    } catch (IOException e) {
      throw unusable("changed", e);
    }
  }

  private BraidException unusable(String action, IOException e) {
    return new BraidException(
        "the decisions in %s must be readable and writable but cannot be %s (%s); set BRAID_CACHE to another folder"
            .formatted(directory, action, e.getClass().getSimpleName()),
        e);
  }

  private static Optional<Decision> read(Path file) {
    try {
      return Optional.of(Decision.fromJson(Files.readString(file)));
    } catch (NoSuchFileException e) {
      return Optional.empty();
    } catch (BraidException | IOException e) {
      throw new BraidException(
          "the kept decision %s cannot be read: %s; delete the file, and it is decided again"
              .formatted(file, e.getMessage()),
          e);
    }
  }

  /// Returns the file of the samples of a search for a decision, which exists until the search has
  /// ended.
  public Path samples(SequencedMap<String, String> setting) {
    return directory.resolve(name(setting) + ".samples");
  }

  private Path file(SequencedMap<String, String> setting) {
    return directory.resolve(name(setting) + SUFFIX);
  }

  private static String name(SequencedMap<String, String> setting) {
    var words =
        setting
            .getOrDefault(Decision.PROBLEM, "")
            .toLowerCase(Locale.ROOT)
            .replaceAll("[^a-z0-9]+", "-");
    var name = words.substring(0, Math.min(NAME_CHARACTERS, words.length()));
    return name + "-" + hash(setting);
  }

  private static String hash(SequencedMap<String, String> setting) {
    var text =
        setting.entrySet().stream()
            .map(each -> each.getKey() + "=" + each.getValue())
            .collect(Collectors.joining("\n"));
    try {
      var digest = MessageDigest.getInstance("SHA-256");
      return HexFormat.of()
          .formatHex(digest.digest(text.getBytes(StandardCharsets.UTF_8)), 0, HASH_BYTES);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }

  /// Returns one row per decision.
  public Table table() {
    TableTypes.ready();
    var all = all();
    return Table.create(
        "decisions",
        column("problem", all, Decision::problem),
        column("tuning", all, decision -> decision.tuning().toString()),
        column(
            "machine",
            all,
            decision ->
                decision.setting().entrySet().stream()
                    .filter(each -> !each.getKey().equals(Decision.PROBLEM))
                    .map(each -> each.getKey() + " " + each.getValue())
                    .collect(Collectors.joining(", "))),
        column("decided at", all, decision -> decision.decidedAt().toString()));
  }

  private static StringColumn column(
      String name, List<Decision> all, Function<Decision, String> value) {
    return StringColumn.create(name, all.stream().map(value));
  }

  @Override
  public MimeBundle display() {
    var table = table();
    if (table.isEmpty()) {
      return MimeBundle.text("no decisions in " + directory);
    }
    return MimeBundle.text(HtmlTable.text(table, table.rowCount()))
        .with(MimeBundle.HTML, HtmlTable.html(table, table.rowCount()));
  }

  @Override
  public String toString() {
    return display().text();
  }
}
