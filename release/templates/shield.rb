class Shield < Formula
  desc "{{.Summary}}"
  homepage "{{.Homepage}}"
  version "{{.Number}}"
  license "{{.License}}"

  on_macos do
    on_arm do
      url "{{(archive "darwin_arm64").URL}}"
      sha256 "{{(archive "darwin_arm64").Sum}}"
    end
  end
  on_linux do
    on_intel do
      url "{{(archive "linux_amd64").URL}}"
      sha256 "{{(archive "linux_amd64").Sum}}"
    end
    on_arm do
      url "{{(archive "linux_arm64").URL}}"
      sha256 "{{(archive "linux_arm64").Sum}}"
    end
  end

  def install
    bin.install "shield"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/shield.bash" => "shield"
    zsh_completion.install "completions/_shield"
    fish_completion.install "completions/shield.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/shield --version")
  end
end
