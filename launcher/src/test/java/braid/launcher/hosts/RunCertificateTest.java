package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.X509Certificate;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunCertificateTest {
  /// The JDK's parser and signature are the oracle of the encoding.
  @Test
  void theCertificateIsSignedByItself() throws Exception {
    for (int i = 0; i < 20; i++) {
      var certificate = (X509Certificate) RunCertificate.create().certificate();
      certificate.verify(certificate.getPublicKey());
      certificate.checkValidity();
      assertThat(certificate.getSubjectX500Principal().getName()).isEqualTo("CN=braid");
      assertThat(certificate.getIssuerX500Principal())
          .isEqualTo(certificate.getSubjectX500Principal());
      assertThat(certificate.getSigAlgName()).isEqualTo("SHA256withECDSA");
    }
  }

  @Test
  void keytoolReadsTheSameHash(@TempDir Path folder) throws Exception {
    var certificate = RunCertificate.create();
    var file = Files.write(folder.resolve("c.der"), certificate.certificate().getEncoded());
    var keytool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-printcert",
                "-file",
                file.toString())
            .redirectErrorStream(true)
            .start();
    var text = new String(keytool.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(text)
        .contains(HexFormat.ofDelimiter(":").withUpperCase().formatHex(certificate.hash()));
  }

  @Test
  void eachRunHasItsOwnCertificate() {
    assertThat(RunCertificate.create().hash()).isNotEqualTo(RunCertificate.create().hash());
  }
}
