package braid.launcher.bundle;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;

/// Fonts for charts on hosts without fonts and fontconfig, copied from the machine that builds the
/// bundle. A configuration file maps Java's fonts to files, so that Java does not call fontconfig.
final class BundledFonts {
  /// Read by Java, as the `braid` script sets `sun.awt.fontconfig`.
  private static final String CONFIGURATION = "fontconfig.properties";

  private static final String SANS = "DejaVuSans.ttf";
  private static final String BOLD = "DejaVuSans-Bold.ttf";
  private static final String MONO = "DejaVuSansMono.ttf";

  private static final List<Path> PLACES =
      List.of(Path.of("/usr/share/fonts"), Path.of("/usr/local/share/fonts"));
  private static final Path LICENCE = Path.of("/usr/share/doc/fonts-dejavu-core/copyright");

  private BundledFonts() {}

  /// Copies the fonts into the runtime image; returns why they are missing, if they are.
  static Optional<String> copy(Path jre) throws IOException {
    var found = new ArrayList<Path>();
    for (var name : List.of(SANS, BOLD, MONO)) {
      var font = find(name);
      if (font.isEmpty()) {
        return Optional.of(
            "%s is missing: charts will need fontconfig and a font where the bundle runs; apt-get install fonts-dejavu-core and bundle again"
                .formatted(name));
      }
      found.add(font.get());
    }
    var fonts = Files.createDirectories(jre.resolve("lib/fonts"));
    for (var font : found) {
      Files.copy(font, fonts.resolve(font.getFileName().toString()));
    }
    if (Files.isReadable(LICENCE)) {
      Files.copy(LICENCE, fonts.resolve("LICENSE"));
    }
    Files.writeString(fonts.resolve(CONFIGURATION), configuration());
    return Files.exists(jre.resolve("lib/libfreetype.so"))
        ? Optional.empty()
        : Optional.of(
            "this JDK lacks libfreetype: charts will need libfreetype6 where the bundle runs");
  }

  private static Optional<Path> find(String name) throws IOException {
    for (var place : PLACES) {
      if (Files.isDirectory(place)) {
        try (var files = Files.find(place, 5, (file, _) -> file.endsWith(name))) {
          var font = files.findFirst();
          if (font.isPresent()) {
            return font;
          }
        }
      }
    }
    return Optional.empty();
  }

  /// Returns the configuration: Java's logical fonts in each style, their X11 names, and their
  /// files.
  static String configuration() {
    var lines = new ArrayList<>(List.of("version=1", "sequence.allfonts=latin-1"));
    var files = new LinkedHashMap<String, String>();
    for (var logical : List.of("dialog", "dialoginput", "monospaced", "sansserif", "serif")) {
      boolean mono = logical.equals("dialoginput") || logical.equals("monospaced");
      for (var style : List.of("plain", "bold", "italic", "bolditalic")) {
        boolean bold = !mono && style.startsWith("bold");
        var name =
            "-misc-dejavu %s-%s-r-normal--*-%%d-*-*-p-*-iso10646-1"
                .formatted(mono ? "sans mono" : "sans", bold ? "bold" : "medium");
        lines.add("%s.%s.latin-1=%s".formatted(logical, style, name));
        files.put(name.replace(' ', '_'), mono ? MONO : bold ? BOLD : SANS);
      }
    }
    files.forEach((name, file) -> lines.add("filename.%s=$JRE_LIB_FONTS/%s".formatted(name, file)));
    return String.join("\n", lines) + "\n";
  }
}
