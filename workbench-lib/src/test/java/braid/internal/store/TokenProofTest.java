package braid.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.store.TokenProof.Side;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;

class TokenProofTest {
  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  /// RFC 4231, test cases 2 and 6.
  @Test
  void theHmacHasThePublishedValues() {
    assertThat(
            HexFormat.of()
                .formatHex(
                    TokenProof.hmac(
                        ascii("Jefe"), ascii("what do ya want "), ascii("for nothing?"))))
        .isEqualTo("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    var key = new byte[131];
    Arrays.fill(key, (byte) 0xaa);
    assertThat(
            HexFormat.of()
                .formatHex(
                    TokenProof.hmac(
                        key, ascii("Test Using Larger Than Block-Size Key - Hash Key First"))))
        .isEqualTo("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  }

  @Test
  void theHmacIsThatOfTheJdk() throws Exception {
    var random = new Random(20301);
    for (int i = 0; i < 200; i++) {
      var key = new byte[1 + random.nextInt(150)];
      var data = new byte[random.nextInt(300)];
      random.nextBytes(key);
      random.nextBytes(data);
      var mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key, "HmacSHA256"));
      assertThat(TokenProof.hmac(key, data)).isEqualTo(mac.doFinal(data));
    }
  }

  @Test
  void aProofChangesWithEachOfItsInputs() {
    var one = TokenProof.nonce();
    var two = TokenProof.nonce();
    var proof = TokenProof.proof(Side.CONNECTING, "token", one, two, ascii("bound"));
    assertThat(proof)
        .isNotEqualTo(TokenProof.proof(Side.ACCEPTING, "token", one, two, ascii("bound")))
        .isNotEqualTo(TokenProof.proof(Side.CONNECTING, "other", one, two, ascii("bound")))
        .isNotEqualTo(TokenProof.proof(Side.CONNECTING, "token", two, one, ascii("bound")))
        .isNotEqualTo(TokenProof.proof(Side.CONNECTING, "token", one, two, ascii("found")))
        .isEqualTo(TokenProof.proof(Side.CONNECTING, "token", one, two, ascii("bound")));
  }
}
