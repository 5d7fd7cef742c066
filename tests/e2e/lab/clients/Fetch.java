// Fetch CA URL...: one line for each URL, its status or its error.
import java.io.FileInputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Arrays;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Fetch {
  static SSLContext trusting(String path) throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (FileInputStream file = new FileInputStream(path)) {
      CertificateFactory factory = CertificateFactory.getInstance("X.509");
      store.setCertificateEntry("lab", factory.generateCertificate(file));
    }
    TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
    trust.init(store);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    return context;
  }

  public static void main(String[] arguments) throws Exception {
    HttpClient client = HttpClient.newBuilder().sslContext(trusting(arguments[0]))
        .connectTimeout(Duration.ofSeconds(25)).build();
    for (String url : Arrays.copyOfRange(arguments, 1, arguments.length)) {
      HttpRequest request =
          HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(25)).build();
      try {
        HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
        System.out.println(url + " " + response.statusCode());
      } catch (IOException error) {
        System.out.println(url + " error " + error);
      }
    }
    System.exit(0);
  }
}
