class KubectlApplyset < Formula
  desc "Apply manifests with kubectl, and prune objects removed from them"
  homepage "https://github.com/kubectl-applyset/kubectl-applyset"
  version "VERSION"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/kubectl-applyset/kubectl-applyset/releases/download/vVERSION/kubectl-applyset-vVERSION-darwin-arm64.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
    on_intel do
      url "https://github.com/kubectl-applyset/kubectl-applyset/releases/download/vVERSION/kubectl-applyset-vVERSION-darwin-amd64.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/kubectl-applyset/kubectl-applyset/releases/download/vVERSION/kubectl-applyset-vVERSION-linux-arm64.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
    on_intel do
      url "https://github.com/kubectl-applyset/kubectl-applyset/releases/download/vVERSION/kubectl-applyset-vVERSION-linux-amd64.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
  end

  def install
    bin.install "kubectl-applyset", "completions/kubectl_complete-applyset"
    bash_completion.install "completions/kubectl-applyset.bash" => "kubectl-applyset"
    zsh_completion.install "completions/_kubectl-applyset"
    fish_completion.install "completions/kubectl-applyset.fish"
    man1.install Dir["man/*"]
    doc.install "sbom.cdx.json"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/kubectl-applyset version")
  end
end
