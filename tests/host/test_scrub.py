"""Secrets are taken out of what leaves the host, and figures stay readable."""

import pytest

from console.host import scrub

SECRETS = [
    "hf_AbCdEfGhIjKlMnOpQrStUv",
    "sk-proj-abcdefghijklmnop_1234",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnop",
    "xoxb-123456789-abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF-_123",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "token {} was used", "x={}", '{{"a": "{}"}}', "-f {}", "[{}]", "A\n{}\nB"])
def test_what_has_the_shape_of_a_key_is_hidden(secret: str, around: str) -> None:
    assert secret not in scrub.scrub(around.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter22",
        "DB_PASSWORD=hunter22",
        "db_pwd=hunter22",
        "--password hunter22",
        "--db-password=hunter22",
        "--hf-token hunter22",
        "--api_key hunter22",
        'password: "hunter22"',
        "{'api_key': 'hunter22'}",
        '{"secret":"hunter22"}',
        "apiKey=hunter22",
        "accessToken: hunter22",
        "WANDB_API_KEY=hunter22 python train.py",
        "aws_secret_access_key = hunter22",
        "Authorization: Bearer hunter22hunter22",
        "https://user:hunter22@host/path",
        "postgres://svc:hunter22@db:5432/x",
        "password='hunter22 with spaces'",
        "https://hunter22@github.com/org/repo.git",
        "https://user:p@hunter22@host/path",
        "redis://:hunter22@db:6379",
        "https://blob.example/x?sv=2024&sig=hunter22",
        "GET /x?X-Amz-Signature=hunter22",
        "Authorization: token hunter22",
        "authorization: bearer hunter22",
        "Set-Cookie: session=hunter22",
        "+ wandb login --relogin hunter22",
        "+ curl -fsS -u ops:hunter22 https://host",
        r"{\"password\": \"hunter22\"}",
        "GITHUB_PAT=hunter22",
        "PGPASS=hunter22",
        "https://hooks.slack.com/services/T000/B000/hunter22",
    ],
)
def test_what_is_named_a_secret_is_hidden(text: str) -> None:
    assert "hunter22" not in scrub.scrub(text)


def test_a_number_named_a_password_is_hidden_too() -> None:
    assert "123456" not in scrub.scrub("password=123456")


def test_a_private_key_is_hidden_whole_also_when_it_is_cut() -> None:
    block = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef\n"

    assert scrub.scrub(f"a\n{block}-----END OPENSSH PRIVATE KEY-----\nb") == "a\n[hidden]\nb"
    assert scrub.scrub(f"a\n{block}") == "a\n[hidden]"


@pytest.mark.parametrize(
    "text",
    [
        "step 18420 | loss 1.192 | tokens=21480 | tok/s 21.5K",
        "tokens_per_step: 65536",
        "max_token=4096",
        "Speculative Store Bypass: Mitigation",
        "PWD=/root/work",
        "OLDPWD=/root",
        "monkey=banana",
        "keyboard: us",
        "the key idea: nothing",
        "author=someone",
        "https://huggingface.co/models?x=1",
        "10.1.2.6:22",
        "pass 3 of 5",
        "a basic configuration",
        "signature (a: int) -> int",
        "wandb: Run data is saved locally",
        "curl https://host:8080/x",
        "ssh://git@host/x",
        "https://host/a@2x.png",
        "KeyError: 'target_layer_ids'",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert scrub.scrub(text) == text


def test_the_values_of_secret_variables_are_hidden_wherever_they_stand() -> None:
    secrets = scrub.values_of([{"MY_TOKEN": "plainword77", "LANG": "C.UTF-8", "N_KEY": "12345678", "A_KEY": "abc"}])

    assert secrets == ["plainword77"]
    assert scrub.scrub("connecting as plainword77 now", secrets) == "connecting as [hidden] now"


def test_a_hash_of_a_secret_stays_since_it_tells_what_changed() -> None:
    assert scrub.scrub('"HF_TOKEN": "hmac:0123456789abcdef"') == '"HF_TOKEN": "hmac:0123456789abcdef"'


def test_a_variable_is_shown_by_name_and_its_secret_value_is_not() -> None:
    assert scrub.variable("WANDB_API_KEY", "abc") == "WANDB_API_KEY=[hidden]"
    assert scrub.variable("LANG", "C") == "LANG=C"


def test_scrubbing_what_was_scrubbed_changes_nothing() -> None:
    once = scrub.scrub("password=x1 token=hf_abcdefghijkl https://a:b@c sk-abcdefghijkl")

    assert scrub.scrub(once) == once


def test_much_text_is_scrubbed_in_time() -> None:
    import time

    text = ("a" * 5000 + " x=1 step 5 loss 2.0 " + "-" * 3000 + "\n") * 400
    began = time.process_time()

    scrub.scrub(text)

    assert time.process_time() - began < 5.0


def test_a_word_of_a_command_line_is_hidden_by_the_option_before_it() -> None:
    argv = ("python", "train.py", "--hf-token", "plain", "--password", "p1 2", "--tokens", "4096", "-v", "x", "--lr=3")

    assert scrub.words(argv) == (*argv[:3], "[hidden]", "--password", "[hidden]", *argv[6:])
