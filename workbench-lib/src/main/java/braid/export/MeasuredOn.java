package braid.export;

import braid.evidence.Decision;
import braid.model.BraidException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// The place of a measurement: what an export says about the machine whose numbers it has.
///
/// @param braid version of Braid
/// @param link link between the ranks, such as `NVLink 4`
/// @param libraries libraries with versions, such as `cuBLAS 13.1, NCCL 2.29`
public record MeasuredOn(
    String braid, String device, String link, String driver, String libraries) {
  private static final int MOST_CHARACTERS = 200;
  private static final String UNKNOWN = "unknown";
  private static final String BRAID = "braid";
  private static final String DRIVER = "driver";
  private static final Set<String> NO_LIBRARIES = Set.of(BRAID, DRIVER, "java");

  /// A version with at least one point: the number in a library's file name has none.
  private static final Pattern NUMBER = Pattern.compile("\\d+(\\.\\d+)+");

  public MeasuredOn {
    check("version of Braid", braid);
    check("device", device);
    check("link", link);
    check("driver", driver);
    check("libraries", libraries);
  }

  /// Returns the place of a decision.
  static MeasuredOn of(Decision decision) {
    var setting = decision.setting();
    var versions = decision.versions();
    var libraries =
        versions.entrySet().stream()
            .filter(each -> !NO_LIBRARIES.contains(each.getKey()))
            .map(each -> each.getKey() + " " + version(each.getValue()))
            .collect(Collectors.joining(", "));
    return new MeasuredOn(
        versions.getOrDefault(BRAID, UNKNOWN),
        "%s x %s"
            .formatted(
                setting.getOrDefault("ranks", UNKNOWN), setting.getOrDefault("device", UNKNOWN)),
        setting.getOrDefault("link", UNKNOWN),
        versions.getOrDefault(DRIVER, "none"),
        libraries.isEmpty() ? UNKNOWN : libraries);
  }

  private static String version(String text) {
    var number = NUMBER.matcher(text);
    return number.find() ? number.group() : text;
  }

  /// The texts become comments of other languages, in which a line break would end the comment.
  private static void check(String name, String text) {
    if (text.isBlank()
        || text.length() > MOST_CHARACTERS
        || !text.chars()
            .allMatch(c -> c >= ' ' && c != 0x7f && c != 0x85 && c != 0x2028 && c != 0x2029)) {
      throw new BraidException(
          "the %s of a measurement must be one line of 1..%d characters but was `%s`; write \"unknown\" if it is not known"
              .formatted(name, MOST_CHARACTERS, shown(text)));
    }
  }

  private static String shown(String text) {
    var line = text.replaceAll("[\\p{Cntrl}\\u2028\\u2029]", "?");
    return line.length() > 60 ? line.substring(0, 60) + "..." : line;
  }

  /// Returns the first lines of an export: where it was measured, and what the target cannot
  /// express.
  List<String> header(String target, List<String> omitted) {
    var lines = new ArrayList<String>();
    lines.add(
        "measured with Braid %s on %s, %s, driver %s, %s, not with %s"
            .formatted(braid, device, link, driver, libraries, target));
    lines.add(
        omitted.isEmpty()
            ? "everything that was measured is expressed"
            : "not expressed by it (%d):".formatted(omitted.size()));
    omitted.forEach(each -> lines.add("- " + each));
    return lines;
  }
}
