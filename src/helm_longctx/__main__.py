"""The command `helm-longctx`, also as `python -m helm_longctx`. Ctrl-C ends it in one line, even during imports."""

import sys


def main() -> None:
    """Run the command line.

    Raises:
        SystemExit: at the end of the command, with its exit status.
    """
    try:
        from helm_longctx.cli.main import main as run_command

        run_command()
    except KeyboardInterrupt:
        print("helm-longctx: interrupted by Ctrl-C", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
