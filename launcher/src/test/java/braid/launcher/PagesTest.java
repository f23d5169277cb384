package braid.launcher;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.MagicName;
import braid.launcher.cli.Braid;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The pages agree with each other and with the code.
class PagesTest {
  private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
  private static final Path GUIDE = ROOT.resolve("docs/guide");
  private static final Pattern LINK = Pattern.compile("\\]\\(([^)\\s]+)\\)");
  private static final Pattern HEADING = Pattern.compile("(?m)^#+ (.*)$");
  private static final Pattern BLOCK = Pattern.compile("(?ms)^```.*?^```$");
  private static final Pattern VARIABLE = Pattern.compile("\\bBRAID_[A-Z_]+\\b");
  private static final int MOST_LINES_OF_README = 150;
  private static final int MOST_LINES_OF_ARCHITECTURE = 120;

  @Test
  void everyLinkLeadsToAFileAndAHeading() throws IOException {
    var broken = new ArrayList<String>();
    int links = 0;
    for (var page : pages()) {
      for (var link : links(page)) {
        links++;
        if (!leadsSomewhere(page, link)) {
          broken.add(ROOT.relativize(page) + ": " + link);
        }
      }
    }
    assertThat(links).isGreaterThan(100);
    assertThat(broken).isEmpty();
  }

  @Test
  void everyPageOfTheGuideIsLinkedFromItsIndexAndTheReadme() throws IOException {
    try (var files = Files.list(GUIDE)) {
      var pages =
          files
              .map(file -> file.getFileName().toString())
              .filter(name -> name.endsWith(".md") && !name.equals("index.md"))
              .toList();
      assertThat(links(GUIDE.resolve("index.md"))).containsAll(pages);
      assertThat(links(ROOT.resolve("README.md")))
          .containsAll(pages.stream().map(name -> "docs/guide/" + name).toList());
    }
  }

  @Test
  void everyFileOfTheDocsIsLinkedFromAPage() throws IOException {
    var linked = new TreeSet<Path>();
    for (var page : pages()) {
      for (var link : links(page)) {
        linked.add(page.resolveSibling(link.split("#", 2)[0]).normalize());
      }
    }
    try (var files = Files.walk(ROOT.resolve("docs"))) {
      assertThat(files.filter(Files::isRegularFile))
          // The page of capabilities is made from these.
          .filteredOn(file -> !file.toString().matches(".*/selftest_.*\\.json"))
          .allMatch(linked::contains);
    }
  }

  @Test
  void theGuideIsATutorialThenTasksConceptsAndReference() throws IOException {
    var parts = List.of("Tutorial", "How to", "Concepts", "Reference");
    assertThat(
            HEADING
                .matcher(Files.readString(GUIDE.resolve("index.md")))
                .results()
                .map(heading -> heading.group(1)))
        .containsExactlyElementsOf(Stream.concat(Stream.of("Guide"), parts.stream()).toList());
    var readme = Files.readString(ROOT.resolve("README.md")).toLowerCase(Locale.ROOT);
    assertThat(parts.stream().map(part -> readme.indexOf("| " + part.toLowerCase(Locale.ROOT))))
        .doesNotContain(-1)
        .isSorted();
  }

  @Test
  void theFirstPagesAreShort() throws IOException {
    assertThat(Files.readAllLines(ROOT.resolve("README.md")))
        .hasSizeLessThanOrEqualTo(MOST_LINES_OF_README);
    assertThat(Files.readAllLines(ROOT.resolve("ARCHITECTURE.md")))
        .hasSizeLessThanOrEqualTo(MOST_LINES_OF_ARCHITECTURE);
  }

  @Test
  void theGuideListsEveryVariableThatIsRead() throws IOException {
    var read =
        Stream.of(
                "workbench-lib/src/main/java/braid/internal/rank/Env.java",
                "launcher/src/main/java/braid/launcher/cli/home/Env.java",
                "braid")
            .flatMap(file -> variables(ROOT.resolve(file)).stream())
            .collect(Collectors.toCollection(TreeSet::new));
    assertThat(read).contains("BRAID_RANKS", "BRAID_CACHE", "BRAID_JAVA_HOME");
    assertThat(variables(GUIDE.resolve("environment.md"))).containsAll(read);
  }

  @Test
  void theGuideListsEveryMagic() throws IOException {
    var page = Files.readString(GUIDE.resolve("kernel_and_magics.md"));
    assertThat(MagicName.spellings())
        .isNotEmpty()
        .allMatch(magic -> Pattern.compile("\\| `" + magic + "[ `]").matcher(page).find());
  }

  @ParameterizedTest
  @CsvSource({"run,headless_and_ci.md", "selftest,gpus_and_the_bundle.md"})
  void theGuideListsEveryOption(String command, String file) throws IOException {
    var page = Files.readString(GUIDE.resolve(file));
    var options =
        Objects.requireNonNull(Braid.commandLine().getSubcommands().get(command))
            .getCommandSpec()
            .options();
    assertThat(options)
        .isNotEmpty()
        .filteredOn(option -> !option.versionHelp() && !option.usageHelp())
        .allMatch(option -> Arrays.stream(option.names()).anyMatch(isIn(page)));
  }

  private static Predicate<String> isIn(String page) {
    return name -> Pattern.compile("`" + name + "[ `]").matcher(page).find();
  }

  @Test
  void theGuideListsEveryExitCode() throws IOException {
    var listed =
        Pattern.compile("(?m)^\\| ([0-9, ]+) \\|")
            .matcher(Files.readString(GUIDE.resolve("headless_and_ci.md")))
            .results()
            .flatMap(row -> Arrays.stream(row.group(1).split(", ")))
            .collect(Collectors.toSet());
    assertThat(listed)
        .containsAll(
            Arrays.stream(ExitCode.values()).map(code -> String.valueOf(code.code())).toList());
  }

  private static List<Path> pages() throws IOException {
    try (var root = Files.list(ROOT);
        var docs = Files.walk(ROOT.resolve("docs"))) {
      return Stream.concat(root, docs).filter(file -> file.toString().endsWith(".md")).toList();
    }
  }

  private static List<String> links(Path page) throws IOException {
    return LINK.matcher(prose(page)).results().map(link -> link.group(1)).toList();
  }

  private static String prose(Path page) throws IOException {
    return BLOCK.matcher(Files.readString(page)).replaceAll("");
  }

  private static boolean leadsSomewhere(Path page, String link) throws IOException {
    if (link.startsWith("https://")) {
      return true;
    }
    var parts = link.split("#", 2);
    var target = parts[0].isEmpty() ? page : page.resolveSibling(parts[0]).normalize();
    return target.startsWith(ROOT)
        && Files.exists(target)
        && (parts.length == 1 || anchors(target).contains(parts[1]));
  }

  /// Anchors as GitHub makes them of headings.
  private static Set<String> anchors(Path page) throws IOException {
    return HEADING
        .matcher(prose(page))
        .results()
        .map(heading -> heading.group(1).toLowerCase(Locale.ROOT))
        .map(text -> text.replaceAll("[^\\p{L}\\p{N} _-]", "").replace(' ', '-'))
        .collect(Collectors.toSet());
  }

  private static Set<String> variables(Path file) {
    try {
      return VARIABLE
          .matcher(Files.readString(file))
          .results()
          .map(MatchResult::group)
          .collect(Collectors.toCollection(TreeSet::new));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
